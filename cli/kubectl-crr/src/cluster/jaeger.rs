//! Jaeger, asked at a URL or through the API server.

use std::{path::Path, time::Duration};

use http::Request;
use kube::{Client, Config, client::Body};
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    args::TraceArgs,
    failure::{Failure, chain},
    jaeger::{Answer, read_answer},
    trace::NoTrace,
};

/// Jaeger reads from memory or a database; more is the network's.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// Jaeger's query service.
pub(crate) struct Jaeger {
    client: Client,
    /// Where it is, in the user's words.
    place: String,
    /// What stands before its own paths.
    base: String,
}

// === impl Jaeger ===

impl Jaeger {
    /// Nothing is sent yet.
    pub(crate) async fn connect(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
        args: &TraceArgs,
    ) -> Result<Self, Failure> {
        let (mut config, place, base) = if let Some(url) = &args.jaeger {
            (Config::new(url.clone()), url.to_string(), String::new())
        } else {
            let config = api_client::config(kubeconfig, context).await;
            let config =
                config.map_err(|error| Failure::unreachable("reading the kubeconfig", &error))?;
            let service = &args.jaeger_service;
            (config, format!("service {service}"), service.proxy_path())
        };
        // "Unavailable" is an answer here: nobody wants to wait for a Jaeger that is away.
        config.default_retry = false;
        config.connect_timeout = Some(ANSWERS_WITHIN);
        let client = api_client::client(config);
        let client =
            client.map_err(|error| Failure::unreachable("preparing to ask Jaeger", &error))?;
        Ok(Self {
            client,
            place,
            base,
        })
    }

    /// Jaeger's answer for the trace of a request.
    pub(crate) async fn fetch_trace(&self, request: &str, id: &str) -> Result<Value, NoTrace> {
        let jaeger = self.place.clone();
        let answer = timeout(ANSWERS_WITHIN, self.ask(id)).await;
        let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {ANSWERS_WITHIN:?}")));
        match answer {
            Ok(Answer::Trace(trace)) => Ok(trace),
            Ok(Answer::NoSuchTrace) => Err(NoTrace::NotThere {
                request: request.to_owned(),
                id: id.to_owned(),
                jaeger,
            }),
            Ok(Answer::NotJaeger(why)) | Err(why) => Err(NoTrace::JaegerAway { jaeger, why }),
        }
    }

    async fn ask(&self, id: &str) -> Result<Answer, String> {
        let question = Request::get(format!("{}/api/traces/{id}", self.base));
        let question = question
            .body(Body::empty())
            .map_err(|error| chain(&error))?;
        let answer = self.client.send(question).await;
        let answer = answer.map_err(|error| chain(&error))?;
        let code = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await;
        let body = body.map_err(|error| chain(&error))?;
        Ok(read_answer(code, &String::from_utf8_lossy(&body)))
    }
}

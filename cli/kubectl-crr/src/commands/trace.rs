//! `trace`: the spans of one request, which Jaeger's query service has, or why there are none.
//!
//! Owns the requests to Jaeger, at a URL or through the API server.

use std::time::Duration;

use http::Request;
use k8s_api::crd::ContainerRecreateRequest as Crr;
use kube::{Client, Config, ResourceExt, client::Body, core::Status};
use model::{error_chain::ErrorChain, labels};
use serde_json::Value;
use tokio::time::timeout;
use trace_tree::{Trace, TraceParent};

use crate::{
    args::{Access, TraceArgs},
    cluster::Cluster,
    failure::{Exit, Failure, Result, no_answer},
    output,
};

/// Jaeger answers from memory or a database; more is the network's.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

struct Jaeger {
    client: Client,
    /// URL or Service, for messages.
    place: String,
    /// Prefix of Jaeger's own paths.
    base: String,
}

pub(super) async fn run(cluster: &Cluster, access: &Access, args: &TraceArgs) -> Result<Exit> {
    let jaeger = Jaeger::connect(access, args).await?;
    let request = cluster.fetch("request ", &args.request).await?;
    let id = trace_of(&request)?;
    let place = &jaeger.place;
    let answer = match jaeger.fetch_trace(&id).await {
        Ok(Some(answer)) => answer,
        Ok(None) => {
            return Err(Failure(format!(
                "Jaeger at {place} has no trace {id} of request {}: its spans have not arrived yet (they come some \
                 seconds late), the services send them elsewhere, or Jaeger has forgotten it",
                args.request
            )));
        }
        Err(why) => {
            return Err(Failure(format!(
                "Jaeger at {place} cannot be reached: {why}\n  \
                 say where it is with --jaeger URL or --jaeger-service NAMESPACE/NAME:PORT"
            )));
        }
    };
    if args.output.is_some() {
        output::print_json(&answer)?;
    } else if let Some(trace) = Trace::read(&id, &answer) {
        output::say(&trace.head())?;
        let lines = trace.lines();
        lines.iter().try_for_each(|line| output::say(line))?;
    }
    Ok(Exit::Done)
}

/// The id of a request's trace, from the annotation that admission writes.
fn trace_of(request: &Crr) -> Result<String> {
    const ANNOTATION: &str = labels::TRACE_PARENT;
    let (name, annotations) = (request.name_any(), request.annotations());
    let text = annotations.get(ANNOTATION);
    Err(Failure(
        match text.map(|text| (text, TraceParent::parse(text))) {
            Some((_, Some(parent))) if parent.is_sampled => return Ok(parent.trace_id),
            Some((_, Some(TraceParent { trace_id, .. }))) => format!(
                "trace {trace_id} of request {name} was not sampled: nobody has sent spans of it, for its traceparent says so"
            ),
            Some((text, None)) => format!(
                "request {name} has no trace: its annotation {ANNOTATION} is {text:?}; a W3C traceparent such as \
             00-<32 digits>-<16 digits>-01 is needed"
            ),
            None => format!(
                "request {name} has no trace: it lacks the annotation {ANNOTATION}, which admission writes when it sends traces \
             (--otlp-endpoint)"
            ),
        },
    ))
}

// === impl Jaeger ===

impl Jaeger {
    /// Sends nothing yet.
    async fn connect(access: &Access, args: &TraceArgs) -> Result<Self> {
        let (mut config, place, base) = if let Some(url) = &args.jaeger {
            (Config::new(url.clone()), url.to_string(), String::new())
        } else {
            let (kubeconfig, context) = (access.kubeconfig.as_deref(), access.context.as_deref());
            let config = api_client::config(kubeconfig, context).await;
            let config = config.map_err(|error| no_answer("reading the kubeconfig", &error))?;
            let service = &args.jaeger_service;
            let place = format!("service {service}");
            (config, place, service.proxy_path.clone())
        };
        // "Unavailable" is an answer here: a command does not wait for Jaeger to come back.
        config.default_retry = false;
        config.connect_timeout = Some(ANSWER_WITHIN);
        let client = api_client::client(config);
        let client = client.map_err(|error| no_answer("preparing to ask Jaeger", &error))?;
        Ok(Self {
            client,
            place,
            base,
        })
    }

    /// Jaeger's answer; `None` if it has no such trace, an error if it gave no usable answer.
    async fn fetch_trace(&self, id: &str) -> Result<Option<Value>, String> {
        let late = format!("no answer within {ANSWER_WITHIN:?}");
        let answer = timeout(ANSWER_WITHIN, self.send(id)).await;
        let answer = answer.map_err(|_| late)?;
        let (code, body) = answer.map_err(|error| ErrorChain(&error).to_string())?;
        read_answer(code, &body)
    }

    async fn send(&self, id: &str) -> Result<(u16, String), kube::Error> {
        let request = Request::get(format!("{}/api/traces/{id}", self.base)).body(Body::empty());
        let request = request.map_err(kube::Error::HttpError)?;
        let answer = self.client.send(request).await?;
        let code = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await?;
        Ok((code, String::from_utf8_lossy(&body).into_owned()))
    }
}

fn read_answer(code: u16, body: &str) -> Result<Option<Value>, String> {
    let not_jaegers = format!("HTTP {code}, and not Jaeger's JSON");
    let json: Option<Value> = serde_json::from_str(body).ok();
    let json = json.filter(Value::is_object).ok_or(not_jaegers.clone())?;
    if json["kind"] == "Status" {
        let status: Status = serde_json::from_value(json).unwrap_or_default();
        return Err(status.message);
    }
    match code {
        200 if Trace::read("", &json).is_some() => Ok(Some(json)),
        200 if json.get("data").is_some() => Ok(None),
        404 if json.get("errors").is_some() => Ok(None),
        _ => Err(match json["errors"][0]["msg"].as_str() {
            Some(error) => format!("HTTP {code}: {error}"),
            None => not_jaegers,
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_annotation_tells_the_trace_or_why_there_is_none() {
        const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
        let cases = [
            (Some(format!("00-{TRACE}-b7ad6b7169203331-01")), TRACE.to_owned()),
            (
                Some(format!("00-{TRACE}-b7ad6b7169203331-00")),
                format!(
                    "trace {TRACE} of request x was not sampled: nobody has sent spans of it, for its traceparent says so"
                ),
            ),
            (
                Some("soon".to_owned()),
                "request x has no trace: its annotation podwright.dev/traceparent is \"soon\"; a W3C traceparent such as \
                 00-<32 digits>-<16 digits>-01 is needed"
                    .to_owned(),
            ),
            (
                None,
                "request x has no trace: it lacks the annotation podwright.dev/traceparent, which admission writes when it \
                 sends traces (--otlp-endpoint)"
                    .to_owned(),
            ),
        ];
        for (text, meant) in cases {
            let annotations = text.map(|text| json!({ labels::TRACE_PARENT: text }));
            let crr = serde_json::from_value(json!({
                "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
                "metadata": { "name": "x", "annotations": annotations },
                "spec": { "podName": "web", "containers": [] },
            }))
            .unwrap();
            let told = trace_of(&crr).unwrap_or_else(|failure| failure.to_string());
            assert_eq!(told, meant);
        }
    }

    #[test]
    fn answers_are_told_apart() {
        let trace = json!({ "data": [{ "spans": [{}] }], "errors": null });
        let missing =
            json!({ "data": null, "errors": [{ "code": 404, "msg": "trace not found" }] });
        let broken = json!({ "data": null, "errors": [{ "code": 500, "msg": "storage is away" }] });
        let status =
            json!({ "kind": "Status", "message": "services \"jaeger\" not found", "code": 404 });
        let not_jaeger = |words: &str| Err(words.to_owned());
        let cases = [
            (200, trace.to_string(), Ok(Some(trace))),
            (200, json!({ "data": [] }).to_string(), Ok(None)),
            (404, missing.to_string(), Ok(None)),
            (
                404,
                status.to_string(),
                not_jaeger("services \"jaeger\" not found"),
            ),
            (
                500,
                broken.to_string(),
                not_jaeger("HTTP 500: storage is away"),
            ),
            (
                404,
                "<html>".to_owned(),
                not_jaeger("HTTP 404, and not Jaeger's JSON"),
            ),
            (
                200,
                "{}".to_owned(),
                not_jaeger("HTTP 200, and not Jaeger's JSON"),
            ),
        ];
        for (code, body, meant) in cases {
            assert_eq!(read_answer(code, &body), meant, "{code} {body}");
        }
    }
}

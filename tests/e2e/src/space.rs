//! A namespace of one's own, removed at the end; what is in it is told when a test fails.

use std::{any::Any, panic::AssertUnwindSafe};

use anyhow::{Context, Result};
use futures::FutureExt;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

use crate::{
    installation::{NAMESPACE, SERVICES},
    kubectl::kubectl,
    wait::{Look, PATIENCE, wait_for},
};

/// How many lines of a service's log are told.
const LOG_LINES: usize = 40;

/// One namespace.
#[derive(Clone)]
pub struct Space {
    pub client: Client,
    pub name: String,
}

/// Runs a case in a namespace of its own.
///
/// # Panics
/// The case failed; the message has all that is known of its namespace.
pub async fn in_space(case: &str, body: impl AsyncFnOnce(&Space) -> Result<()>) {
    let space = match Space::create(case).await {
        Ok(space) => space,
        Err(error) => panic!("{error:?}"),
    };
    let end = AssertUnwindSafe(body(&space)).catch_unwind().await;
    let problem = match end {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("{error:?}")),
        Err(panic) => Some(text_of(panic.as_ref())),
    };
    let dump = match &problem {
        Some(_) => space.dump().await,
        None => String::new(),
    };
    let removed = space.remove().await;
    if let Some(problem) = problem {
        panic!("{problem}\n\n{dump}");
    }
    removed.expect("the namespace can be removed");
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap_or_else(|| "it panicked".to_owned())
}

/// The API server of `KUBECONFIG`.
///
/// # Errors
/// There is no usable configuration.
pub async fn connect() -> Result<Client> {
    // The only error is that a provider is installed already, which serves as well.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let client = Client::try_default().await;
    client.context("no cluster: KUBECONFIG names none that can be used")
}

// === impl Space ===

impl Space {
    /// Makes a namespace whose name begins with `case`.
    ///
    /// # Errors
    /// The API server cannot be reached, or does not let us.
    pub async fn create(case: &str) -> Result<Self> {
        let client = connect().await?;
        let random = uuid::Uuid::new_v4().simple().to_string();
        let name = format!("{case}-{}", &random[..6]);
        let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
        Api::all(client.clone())
            .create(&PostParams::default(), &namespace)
            .await
            .with_context(|| format!("failed to create namespace {name}"))?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &name);
        wait_for("the default service account", PATIENCE, async || {
            let account = accounts.get_opt("default").await?;
            Ok(Look::is(account.is_some(), "it is not there"))
        })
        .await?;
        Ok(Self { client, name })
    }

    /// Deletes the namespace; that its content is gone is not waited for.
    ///
    /// # Errors
    /// The API server does not let us.
    pub async fn remove(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let deleted = namespaces
            .delete(&self.name, &DeleteParams::background())
            .await;
        deleted
            .map(drop)
            .with_context(|| format!("failed to delete namespace {}", self.name))
    }

    /// Pods, requests, events, and what the services logged of this namespace.
    pub async fn dump(&self) -> String {
        let here = ["-n", &self.name];
        let mut text = String::new();
        for words in [
            &["get", "pods", "-o", "wide"][..],
            &["get", "crr", "-o", "yaml"],
            &["get", "events", "--sort-by=.lastTimestamp"],
        ] {
            let arguments = [&here[..], words].concat();
            let shown = kubectl(&arguments, "").await;
            text += &section(&words.join(" "), shown);
        }
        for service in SERVICES {
            let log = self.log_of(service).await;
            text += &section(&format!("log of {service}"), log);
        }
        text
    }

    async fn log_of(&self, service: &str) -> Result<String> {
        let selector = format!("app.kubernetes.io/name={service}");
        let arguments = [
            "-n",
            NAMESPACE,
            "logs",
            "-l",
            &selector,
            "--prefix",
            "--tail=1000",
        ];
        let log = kubectl(&arguments, "").await?;
        let concerns_us = |line: &&str| {
            let marks = [self.name.as_str(), "WARN", "ERROR"];
            marks.iter().any(|mark| line.contains(mark))
        };
        let lines: Vec<_> = log.lines().filter(concerns_us).collect();
        let first = lines.len().saturating_sub(LOG_LINES);
        Ok(lines[first..].join("\n"))
    }
}

fn section(title: &str, content: Result<String>) -> String {
    let content = content.unwrap_or_else(|error| format!("{error:#}"));
    format!("--- {title}\n{content}\n")
}

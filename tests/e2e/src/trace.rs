//! A request's or a launch's trace, waited for.
//!
//! Jaeger is asked through the API server, so that any cluster will do. What a trace is, is `trace_tree`'s.

use std::time::Duration;

use anyhow::{Context, Result};
use kube::{Client, ResourceExt};
use model::labels;
use trace_tree::{Trace, TraceParent};

use crate::{
    installation::NAMESPACE,
    wait::{Look, wait_for},
};

/// Spans are sent a second after they end, and Jaeger takes a moment.
const UNTIL_SPANS_ARE_THERE: Duration = Duration::from_secs(20);

/// Waits until an object's trace is there, with spans of all that.
///
/// # Errors
/// The object has no trace, or the spans never came.
pub async fn wait_for_trace(
    client: &Client,
    object: &impl ResourceExt,
    wanted: &[&str],
) -> Result<Trace> {
    let parent = object.annotations().get(labels::TRACE_PARENT);
    let parent = parent.and_then(|text| TraceParent::parse(text));
    let id = parent.context("the object names no trace")?.trace_id;
    let what = format!("trace {id} with {wanted:?}");
    wait_for(&what, UNTIL_SPANS_ARE_THERE, async || {
        let trace = fetch(client, &id).await?;
        let is_there = |name: &&str| trace.span(name).is_some();
        Ok(if wanted.iter().all(is_there) && trace.roots().len() == 1 {
            Look::Found(trace)
        } else {
            Look::NotYet(trace.lines().join("\n"))
        })
    })
    .await
}

async fn fetch(client: &Client, id: &str) -> Result<Trace> {
    let path =
        format!("/api/v1/namespaces/{NAMESPACE}/services/jaeger:query/proxy/api/traces/{id}");
    let request = http::Request::get(path).body(Vec::new())?;
    let answer = client.request(request).await?;
    Trace::read(id, &answer).context("Jaeger has no spans")
}

//! A request's trace, as Jaeger has it.
//!
//! Owns the reading of Jaeger's JSON. It is asked through the API server, so that any cluster will do.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result};
use k8s_api::crd::ContainerRecreateRequest;
use kube::{Client, ResourceExt};
use model::labels;
use serde_json::Value;

use crate::{
    installation::NAMESPACE,
    wait::{Look, wait_for},
};

/// Spans are sent a second after they end, and Jaeger takes a moment.
const UNTIL_SPANS_ARE_THERE: Duration = Duration::from_secs(20);

/// All spans of one trace.
#[derive(Clone, Debug)]
pub struct Trace {
    pub id: String,
    /// By their beginning.
    pub spans: Vec<Span>,
}

#[derive(Clone, Debug)]
pub struct Span {
    pub id: String,
    pub parent: Option<String>,
    pub service: String,
    pub name: String,
    /// Microseconds since 1970, by the clock of the service.
    pub begins_at: u64,
    pub duration: Duration,
}

// === impl Trace ===

impl Trace {
    /// The id of the trace that a request belongs to, from the annotation that admission wrote.
    pub fn id_of(request: &ContainerRecreateRequest) -> Option<String> {
        let traceparent = request.annotations().get(labels::TRACE_PARENT)?;
        traceparent.split('-').nth(1).map(str::to_owned)
    }

    /// Waits until a request's trace is there, with spans of all that.
    ///
    /// # Errors
    /// The request has no trace, or the spans never came.
    pub async fn wait_for(
        client: &Client,
        request: &ContainerRecreateRequest,
        wanted: &[&str],
    ) -> Result<Self> {
        let id = Self::id_of(request).context("the request names no trace")?;
        wait_for(
            &format!("trace {id} with {wanted:?}"),
            UNTIL_SPANS_ARE_THERE,
            async || {
                let trace = Self::fetch(client, &id).await?;
                let is_there = |name: &&str| trace.span(name).is_some();
                Ok(if wanted.iter().all(is_there) && trace.roots().len() == 1 {
                    Look::Found(trace)
                } else {
                    Look::NotYet(trace.lines().join("\n"))
                })
            },
        )
        .await
    }

    async fn fetch(client: &Client, id: &str) -> Result<Self> {
        let path =
            format!("/api/v1/namespaces/{NAMESPACE}/services/jaeger:query/proxy/api/traces/{id}");
        let answer: Value = client
            .request(http::Request::get(path).body(Vec::new())?)
            .await?;
        Self::read(id, &answer)
    }

    fn read(id: &str, answer: &Value) -> Result<Self> {
        let trace = &answer["data"][0];
        let spans = trace["spans"].as_array().context("Jaeger has no spans")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut spans: Vec<_> = spans
            .iter()
            .map(|span| Span {
                id: text(&span["spanID"]),
                parent: span["references"][0]["spanID"].as_str().map(str::to_owned),
                service: text(&trace["processes"][text(&span["processID"])]["serviceName"]),
                name: text(&span["operationName"]),
                begins_at: span["startTime"].as_u64().unwrap_or_default(),
                duration: Duration::from_micros(span["duration"].as_u64().unwrap_or_default()),
            })
            .collect();
        spans.sort_by_key(|span| span.begins_at);
        Ok(Self {
            id: id.to_owned(),
            spans,
        })
    }

    /// The first span whose name is or begins with that.
    pub fn span(&self, name: &str) -> Option<&Span> {
        self.spans.iter().find(|span| span.name.starts_with(name))
    }

    pub fn services(&self) -> BTreeSet<&str> {
        self.spans
            .iter()
            .map(|span| span.service.as_str())
            .collect()
    }

    /// Spans whose parent is not there.
    pub fn roots(&self) -> Vec<&Span> {
        let is_there = |id: &String| self.spans.iter().any(|span| span.id == *id);
        let is_root = |span: &&Span| !span.parent.as_ref().is_some_and(is_there);
        self.spans.iter().filter(is_root).collect()
    }

    /// The tree of spans, one a line: when it began, how long it took, whose it is, what it is.
    pub fn lines(&self) -> Vec<String> {
        let start = self.spans.first().map_or(0, |span| span.begins_at);
        let mut lines = Vec::new();
        for root in self.roots() {
            self.push_lines(root, start, "", &mut lines);
        }
        lines
    }

    fn push_lines(&self, span: &Span, start: u64, indent: &str, lines: &mut Vec<String>) {
        let after = Duration::from_micros(span.begins_at.saturating_sub(start));
        lines.push(format!(
            "{:>10}  {:>10}  {:<14} {indent}{}",
            milliseconds(after),
            milliseconds(span.duration),
            span.service,
            span.name
        ));
        let is_child = |other: &&Span| other.parent.as_deref() == Some(&span.id);
        for child in self.spans.iter().filter(is_child) {
            self.push_lines(child, start, &format!("{indent}  "), lines);
        }
    }
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn spans_are_a_tree() {
        let span = |id: &str, parent: &str, name: &str, at: u64| {
            json!({
                "spanID": id, "operationName": name, "startTime": at, "duration": 1500, "processID": "p1",
                "references": [{ "refType": "CHILD_OF", "spanID": parent }],
            })
        };
        let spans = [
            span("c", "b", "cri StopContainer", 1002),
            span("a", "elsewhere", "review", 1000),
            span("b", "a", "recreate", 1001),
        ];
        let processes = json!({ "p1": { "serviceName": "admission" } });
        let answer = json!({ "data": [{ "spans": spans, "processes": processes }] });
        let trace = Trace::read("t", &answer).unwrap();
        assert_eq!(
            trace.lines(),
            [
                "    0.0 ms      1.5 ms  admission      review",
                "    0.0 ms      1.5 ms  admission        recreate",
                "    0.0 ms      1.5 ms  admission          cri StopContainer",
            ]
        );
    }
}

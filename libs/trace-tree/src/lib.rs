//! A trace as Jaeger's query API tells it, and its spans as a tree.
//!
//! Owns the reading of Jaeger's JSON and of W3C's `traceparent`, and the lines of the tree. It asks nobody: where Jaeger
//! is, and how it is reached, is its users' business.

mod parent;
mod tree;

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;

pub use parent::TraceParent;

/// All spans of one trace.
#[derive(Clone, Debug)]
pub struct Trace {
    pub id: String,
    /// By their beginning.
    pub spans: Vec<Span>,
}

/// One piece of work of one service.
#[derive(Clone, Debug)]
pub struct Span {
    pub id: String,
    pub parent: Option<String>,
    pub service: String,
    pub name: String,
    /// Microseconds since 1970, by the clock of the service.
    pub begins_at: u64,
    pub duration: Duration,
    /// Why it failed, where it did; empty where nobody said.
    pub failure: Option<String>,
}

// === impl Trace ===

impl Trace {
    /// The trace in Jaeger's answer to `/api/traces/<id>`; nothing where it has no span of it.
    pub fn read(id: &str, answer: &Value) -> Option<Self> {
        let trace = &answer["data"][0];
        let spans = trace["spans"].as_array()?.iter();
        let mut spans: Vec<_> = spans
            .map(|span| Span::read(span, &trace["processes"]))
            .collect();
        spans.sort_by_key(|span| span.begins_at);
        let trace = Self {
            id: id.to_owned(),
            spans,
        };
        (!trace.spans.is_empty()).then_some(trace)
    }

    /// The first span whose name is or begins with that.
    pub fn span(&self, name: &str) -> Option<&Span> {
        self.spans.iter().find(|span| span.name.starts_with(name))
    }

    pub fn services(&self) -> BTreeSet<&str> {
        let services = self.spans.iter().map(|span| span.service.as_str());
        services.collect()
    }

    /// Spans whose parent is not there.
    pub fn roots(&self) -> Vec<&Span> {
        self.spans
            .iter()
            .filter(|span| self.is_root(span))
            .collect()
    }

    fn is_root(&self, span: &Span) -> bool {
        let is_there = |id: &String| self.spans.iter().any(|span| span.id == *id);
        !span.parent.as_ref().is_some_and(is_there)
    }
}

// === impl Span ===

impl Span {
    fn read(span: &Value, processes: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let is_parent = |reference: &&Value| reference["refType"] != "FOLLOWS_FROM";
        let mut references = span["references"].as_array().into_iter().flatten();
        let parent = references.find(is_parent);
        Self {
            id: text(&span["spanID"]),
            parent: parent.and_then(|parent| parent["spanID"].as_str().map(str::to_owned)),
            service: text(&processes[text(&span["processID"])]["serviceName"]),
            name: text(&span["operationName"]),
            begins_at: span["startTime"].as_u64().unwrap_or_default(),
            duration: Duration::from_micros(span["duration"].as_u64().unwrap_or_default()),
            failure: failure(span),
        }
    }
}

/// OpenTelemetry's status as Jaeger keeps it: in tags.
fn failure(span: &Value) -> Option<String> {
    let tag = |key: &str| {
        let mut tags = span["tags"].as_array()?.iter();
        Some(&tags.find(|tag| tag["key"] == key)?["value"])
    };
    let says = |key, word: &str| tag(key).is_some_and(|value| value == word);
    let has_failed = tag("error") == Some(&Value::Bool(true)) || says("otel.status_code", "ERROR");
    let why = || tag("otel.status_description").and_then(Value::as_str);
    has_failed.then(|| why().unwrap_or_default().to_owned())
}

//! The tree of spans as lines: when each began, how long it took, whose it is, what it is, whether it failed.

use std::{collections::BTreeSet, time::Duration};

use crate::Trace;

/// The service's column is no narrower, so that trees of our services look alike.
const SERVICE_COLUMN: usize = 14;

/// What is known while the lines are made.
struct Lines<'a> {
    trace: &'a Trace,
    start: u64,
    service_column: usize,
    /// Spans that are told, by their place: a broken trace may name a span twice, or its own parent.
    told: BTreeSet<usize>,
    lines: Vec<String>,
}

// === impl Trace ===

impl Trace {
    /// The tree, one span a line. Every span is told once, whatever its parents are.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Lines {
            trace: self,
            start: self.spans.first().map_or(0, |span| span.begins_at),
            service_column: self.service_column(),
            told: BTreeSet::new(),
            lines: Vec::new(),
        };
        let places = 0..self.spans.len();
        let roots = places
            .clone()
            .filter(|place| self.is_root(&self.spans[*place]));
        for place in roots.chain(places) {
            lines.push(place, "");
        }
        lines.lines
    }

    /// What stands above the lines.
    pub fn head(&self) -> String {
        let width = self.service_column();
        let [after, took, service] = ["after", "took", "service"];
        format!("{after:>10}  {took:>10}  {service:<width$} what")
    }

    fn service_column(&self) -> usize {
        let services = self.spans.iter().map(|span| span.service.chars().count());
        services.max().unwrap_or_default().max(SERVICE_COLUMN)
    }
}

// === impl Lines ===

impl Lines<'_> {
    fn push(&mut self, place: usize, indent: &str) {
        let (trace, span) = (self.trace, &self.trace.spans[place]);
        if !self.told.insert(place) {
            return;
        }
        let after = Duration::from_micros(span.begins_at.saturating_sub(self.start));
        let failure = match span.failure.as_deref() {
            None => String::new(),
            Some("") => "  FAILED".to_owned(),
            Some(why) => format!("  FAILED: {why}"),
        };
        let [after, took] = [after, span.duration].map(milliseconds);
        let (service, name, width) = (&span.service, &span.name, self.service_column);
        let line = format!("{after:>10}  {took:>10}  {service:<width$} {indent}{name}{failure}");
        self.lines.push(line);
        let indent = format!("{indent}  ");
        for (place, child) in trace.spans.iter().enumerate() {
            if child.parent.as_deref() == Some(&span.id) {
                self.push(place, &indent);
            }
        }
    }
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn span(id: &str, parent: &str, name: &str, at: u64) -> Value {
        json!({
            "spanID": id, "operationName": name, "startTime": at, "duration": 1500, "processID": "p1",
            "references": [{ "refType": "CHILD_OF", "spanID": parent }],
        })
    }

    fn read(spans: &[Value]) -> Option<Trace> {
        let processes = json!({ "p1": { "serviceName": "admission" } });
        let answer = json!({ "data": [{ "spans": spans, "processes": processes }] });
        Trace::read("t", &answer)
    }

    #[test]
    fn spans_are_a_tree() {
        let mut failed = span("c", "b", "cri StopContainer", 3002);
        failed["tags"] = json!([
            { "key": "otel.status_code", "type": "string", "value": "ERROR" },
            { "key": "otel.status_description", "type": "string", "value": "no such container" },
        ]);
        let mut failed_silently = span("d", "b", "report", 4002);
        failed_silently["tags"] = json!([{ "key": "error", "type": "bool", "value": true }]);
        let trace = read(&[
            failed,
            failed_silently,
            span("a", "elsewhere", "review", 1000),
            span("b", "a", "recreate", 1001),
        ])
        .unwrap();
        assert_eq!(trace.head(), "     after        took  service        what");
        assert_eq!(
            trace.lines(),
            [
                "    0.0 ms      1.5 ms  admission      review",
                "    0.0 ms      1.5 ms  admission        recreate",
                "    2.0 ms      1.5 ms  admission          cri StopContainer  FAILED: no such container",
                "    3.0 ms      1.5 ms  admission          report  FAILED",
            ]
        );
        assert_eq!(trace.roots().len(), 1);
    }

    #[test]
    fn a_broken_trace_ends_and_leaves_nothing_out() {
        let own_parent = span("a", "a", "own parent", 1);
        let twice = [
            span("b", "", "twice", 2),
            span("b", "b", "twice", 3),
            span("c", "b", "child", 4),
        ];
        let trace = read(&[&[own_parent][..], &twice].concat()).unwrap();
        assert_eq!(trace.lines().len(), 4, "{:?}", trace.lines());
    }

    #[test]
    fn an_answer_without_spans_is_no_trace() {
        assert!(read(&[]).is_none());
        for answer in [json!({ "data": null }), json!({ "data": [] }), json!("?")] {
            assert!(Trace::read("t", &answer).is_none(), "{answer}");
        }
    }
}

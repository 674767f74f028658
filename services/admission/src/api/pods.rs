//! The answers to the creation of pods: readiness gate and launch barriers.

use admission_rules::{GateScope, LaunchFacts, Verdict, gate_pod, review_launch};
use serde_json::Value;
use service_kit::trace;
use tracing::{debug, info};
use uuid::Uuid;

use crate::metrics::Metrics;

/// The letters of Kubernetes' own random names: no vowel makes a word of them.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// How many end a generated name (Kubernetes).
const NAME_END: usize = 5;

/// A pod is never refused for want of a gate.
pub(super) fn decide_gate(metrics: &Metrics, scope: GateScope, request: &Value) -> Verdict {
    if !is_creation(request) {
        return Verdict::default();
    }
    let patch = gate_pod(&request["object"], scope);
    let result = if patch.0.is_empty() { "left" } else { "gated" };
    metrics.count(result);
    debug!(ns = request["namespace"].as_str(), result, "Reviewed a pod");
    Verdict {
        patch,
        ..Verdict::default()
    }
}

/// A pod that would start in the wrong order, or never, is refused.
pub(super) fn decide_launch(metrics: &Metrics, request: &Value) -> Verdict {
    if !is_creation(request) {
        return Verdict::default();
    }
    let (name_end, trace_parent) = (random_name_end(), trace::current_traceparent());
    let facts = LaunchFacts {
        name_end: &name_end,
        trace_parent: trace_parent.as_deref(),
    };
    let pod = &request["object"];
    let verdict = review_launch(pod, &facts);
    let result = match (verdict.is_allowed(), verdict.patch.0.is_empty()) {
        (false, _) => "refused",
        (true, false) => "ordered",
        (true, true) => "left",
    };
    metrics.count(result);
    let name = pod["metadata"]["name"]
        .as_str()
        .or(pod["metadata"]["generateName"].as_str());
    info!(
        ns = request["namespace"].as_str(),
        pod = name,
        result,
        "Reviewed a pod's launch"
    );
    verdict
}

fn is_creation(request: &Value) -> bool {
    request["operation"] == "CREATE" && request["subResource"].is_null()
}

fn random_name_end() -> String {
    let bytes = Uuid::new_v4().into_bytes();
    let letters = bytes.iter().take(NAME_END);
    letters
        .map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn name_ends_differ_and_fit_a_name() {
        let ends: BTreeSet<_> = (0..100).map(|_| random_name_end()).collect();
        assert!(ends.len() > 90, "{ends:?}");
        assert!(ends.iter().all(|end| end.len() == NAME_END));
    }
}

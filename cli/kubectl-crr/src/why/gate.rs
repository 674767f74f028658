//! The readiness gate of a pod while it is shut: since when, and its holders.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use model::{labels, pod::GateHolder};
use serde::Serialize;

use crate::pod::condition;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GateStory {
    condition: &'static str,
    /// Status of the condition; `None` before it is first written.
    status: Option<String>,
    since: Option<Timestamp>,
    held_by: Vec<GateHolder>,
    /// Message of the condition, unless it is a list of holders.
    message: Option<String>,
}

/// The gate, if the pod has one and it is shut.
pub(super) fn gate(pod: &Pod) -> Option<GateStory> {
    let mut gates = pod.spec.as_ref()?.readiness_gates.iter().flatten();
    let has_gate = gates.any(|gate| gate.condition_type == labels::KRUISE_POD_READY);
    let condition = condition(pod, labels::KRUISE_POD_READY);
    if !has_gate || condition.is_some_and(|it| it.status == "True") {
        return None;
    }
    let message = condition.and_then(|it| it.message.as_deref());
    let message = message.unwrap_or_default().trim();
    let holders: Option<Vec<GateHolder>> = serde_json::from_str(message).ok();
    let is_text = holders.is_none() && !message.is_empty();
    let since = condition.and_then(|it| it.last_transition_time.as_ref());
    Some(GateStory {
        condition: labels::KRUISE_POD_READY,
        status: condition.map(|it| it.status.clone()),
        since: since.map(|time| time.0),
        held_by: holders.unwrap_or_default(),
        message: is_text.then(|| message.to_owned()),
    })
}

// === impl GateStory ===

impl GateStory {
    pub(super) fn lines(&self) -> Vec<String> {
        let gate = self.condition;
        let Some(status) = &self.status else {
            let state = "shut: its condition is not written yet";
            return vec![format!("Readiness gate {gate} is {state}")];
        };
        let since = self.since.map(|time| format!(" since {time}"));
        let since = since.unwrap_or_default();
        let mut lines = vec![format!("Readiness gate {gate} is {status}{since}:")];
        let holders = self.held_by.iter();
        lines.extend(holders.map(|it| format!("  held by {} {}", it.user_agent, it.key)));
        lines.extend(self.message.iter().map(|message| format!("  {message}")));
        if lines.len() == 1 {
            lines.push("  held by nobody: it will be opened".to_owned());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lines(gates: &Value, conditions: &Value) -> Vec<String> {
        let pod = json!({
            "spec": { "containers": [], "readinessGates": gates }, "status": { "conditions": conditions },
        });
        let story = gate(&serde_json::from_value(pod).unwrap());
        story.map(|story| story.lines()).unwrap_or_default()
    }

    #[test]
    fn a_shut_gate_names_its_holders() {
        let ours = json!([{ "conditionType": labels::KRUISE_POD_READY }]);
        let is = |status: &str, message: &str| {
            json!([{
                "type": labels::KRUISE_POD_READY, "status": status, "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }])
        };
        let holders = r#"[{"userAgent":"ContainerRecreateRequest","key":"shop/restart"},{"userAgent":"InPlaceUpdate","key":"web"}]"#;
        let head = "Readiness gate KruisePodReady is False since 2026-01-01T00:00:00Z:";
        let cases: [(&Value, Value, &[&str]); 7] = [
            (
                &ours,
                is("False", holders),
                &[
                    head,
                    "  held by ContainerRecreateRequest shop/restart",
                    "  held by InPlaceUpdate web",
                ],
            ),
            (&ours, is("True", "[]"), &[]),
            (
                &ours,
                is("False", "[]"),
                &[head, "  held by nobody: it will be opened"],
            ),
            (
                &ours,
                is("False", "under repair"),
                &[head, "  under repair"],
            ),
            (
                &ours,
                json!([]),
                &["Readiness gate KruisePodReady is shut: its condition is not written yet"],
            ),
            (&json!([]), is("False", holders), &[]),
            (&Value::Null, Value::Null, &[]),
        ];
        for (gates, conditions, told) in cases {
            assert_eq!(lines(gates, &conditions), told, "{conditions}");
        }
    }
}

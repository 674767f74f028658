//! The readiness gate of a pod, where it is shut: since when, and who holds it.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use model::labels;
use serde::{Deserialize, Serialize};

/// A gate that is not open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GateStory {
    condition: &'static str,
    /// `False`, or what else keeps it shut; nothing where nobody has written the condition yet.
    status: Option<String>,
    since: Option<Timestamp>,
    held_by: Vec<Holder>,
    /// What the condition says, where it is no list of holders.
    message: Option<String>,
}

/// An entry of the condition's message, as OpenKruise writes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Holder {
    user_agent: String,
    key: String,
}

/// The gate, where the pod has one and it is shut.
pub(super) fn gate(pod: &Pod) -> Option<GateStory> {
    let gates = pod.spec.as_ref()?.readiness_gates.iter().flatten();
    let mut gates = gates.map(|gate| gate.condition_type.as_str());
    let conditions = pod.status.iter().flat_map(|status| &status.conditions);
    let mut conditions = conditions.flatten();
    let condition = conditions.find(|it| it.type_ == labels::KRUISE_POD_READY);
    let has_gate = gates.any(|gate| gate == labels::KRUISE_POD_READY);
    if !has_gate || condition.is_some_and(|it| it.status == "True") {
        return None;
    }
    let said = condition.and_then(|it| it.message.as_deref());
    let said = said.unwrap_or_default().trim();
    let holders: Option<Vec<Holder>> = serde_json::from_str(said).ok();
    let message = (holders.is_none() && !said.is_empty()).then(|| said.to_owned());
    let since = condition.and_then(|it| it.last_transition_time.as_ref());
    Some(GateStory {
        condition: labels::KRUISE_POD_READY,
        status: condition.map(|it| it.status.clone()),
        since: since.map(|time| time.0),
        held_by: holders.unwrap_or_default(),
        message,
    })
}

// === impl GateStory ===

impl GateStory {
    pub(super) fn lines(&self) -> Vec<String> {
        let Some(status) = &self.status else {
            let gate = self.condition;
            let line = format!("Readiness gate {gate} is shut: its condition is not written yet");
            return vec![line];
        };
        let since = self.since.map(|time| format!(" since {time}"));
        let since = since.unwrap_or_default();
        let holders = self.held_by.iter();
        let mut who: Vec<_> = holders
            .map(|holder| format!("  held by {} {}", holder.user_agent, holder.key))
            .collect();
        who.extend(self.message.as_ref().map(|message| format!("  {message}")));
        if who.is_empty() {
            who.push("  held by nobody: it will be opened".to_owned());
        }
        let head = format!("Readiness gate {} is {status}{since}:", self.condition);
        [vec![head], who].concat()
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

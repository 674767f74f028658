//! A request explained: how it stands, what the conditions say, and what happened when.

use jiff::Timestamp;
use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use model::labels;

use crate::outcome::lines;

/// The explanation, from the request and the events about it.
pub(crate) fn explain(request: &ContainerRecreateRequest, events: &[Event]) -> Vec<String> {
    let by = request.annotations().get(labels::REQUESTED_BY);
    let by = by.map(|user| format!(", requested by {user}"));
    let by = by.unwrap_or_default();
    let pod = &request.spec.pod_name;
    let mut text = vec![format!(
        "{}: restarts containers of pod {pod}{by}",
        request.name_any()
    )];
    text.extend(lines(request).iter().map(|line| format!("  {line}")));
    let conditions = request.status.iter().flat_map(|status| &status.conditions);
    let mut happened: Vec<(Timestamp, String)> = Vec::new();
    for it in conditions {
        let words = format!("{}={} {}: {}", it.type_, it.status, it.reason, it.message);
        happened.push((it.last_transition_time.0, words));
    }
    for event in events {
        let time = event.event_time.as_ref().map(|time| time.0);
        let time = time.or(event.last_timestamp.as_ref().map(|time| time.0));
        let reason = event.reason.as_deref().unwrap_or_default();
        let message = event.message.as_deref().unwrap_or_default();
        happened.extend(time.map(|time| (time, format!("event {reason}: {message}"))));
    }
    let created = request.creation_timestamp().map(|time| time.0);
    happened.extend(created.map(|time| (time, "created".to_owned())));
    let ended = request
        .status
        .as_ref()
        .and_then(|status| status.completion_time.as_ref());
    happened.extend(ended.map(|time| (time.0, "completed".to_owned())));
    happened.sort_by_key(|(time, _)| *time); // Stable: what has the same second stays in order.
    text.push("Timeline:".to_owned());
    text.extend(
        happened
            .iter()
            .map(|(time, words)| format!("  {time}  {words}")),
    );
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_known_is_told_in_order() {
        let crr = serde_json::from_value(json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
            "metadata": {
                "name": "x", "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": { labels::REQUESTED_BY: "jane" },
            },
            "spec": { "podName": "web", "containers": [{ "name": "app" }] },
            "status": {
                "phase": "Completed", "completionTime": "2026-01-01T00:00:03Z",
                "conditions": [{
                    "type": "Succeeded", "status": "False", "reason": "PodGone", "message": "gone",
                    "lastTransitionTime": "2026-01-01T00:00:02Z",
                }],
            },
        }))
        .unwrap();
        let event = serde_json::from_value(json!({
            "metadata": {}, "involvedObject": {}, "reason": "Killing", "message": "Stopping app",
            "lastTimestamp": "2026-01-01T00:00:01Z",
        }))
        .unwrap();
        let told = [
            "x: restarts containers of pod web, requested by jane",
            "  web: FAILED (gone)",
            "Timeline:",
            "  2026-01-01T00:00:00Z  created",
            "  2026-01-01T00:00:01Z  event Killing: Stopping app",
            "  2026-01-01T00:00:02Z  Succeeded=False PodGone: gone",
            "  2026-01-01T00:00:03Z  completed",
        ];
        assert_eq!(explain(&crr, &[event]), told);
    }
}

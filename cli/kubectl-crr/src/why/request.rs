//! A request: its containers and conditions as they are, and as a story of its own.

use jiff::Timestamp;
use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use model::labels;
use serde::Serialize;

use super::timeline::{self, Moment};
use crate::outcome::{Outcome, lines, outcome, phase};

/// How a request stands.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestStory {
    pub(super) name: String,
    namespace: String,
    pod: String,
    requested_by: Option<String>,
    /// Whether the pod is still its: it has the label `active`.
    pub(super) active: bool,
    phase: String,
    /// `Succeeded` or `Failed`; nothing while it has not ended.
    result: Option<&'static str>,
    message: Option<String>,
    pub(super) created_at: Option<Timestamp>,
    completed_at: Option<Timestamp>,
    containers: Vec<ContainerState>,
    conditions: Vec<Condition>,
    /// How it stands, in lines.
    #[serde(skip)]
    standing: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ContainerState {
    name: String,
    phase: Option<String>,
    message: Option<String>,
    /// Whether the request stopped it.
    is_killed: Option<bool>,
}

#[derive(Clone, Debug, Serialize)]
struct Condition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
    since: Timestamp,
}

/// A request explained.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RequestExplained {
    kind: &'static str,
    request: RequestStory,
    timeline: Vec<Moment>,
}

// === impl RequestStory ===

impl RequestStory {
    pub(super) fn new(request: &ContainerRecreateRequest) -> Self {
        let status = request.status.as_ref();
        let containers = request.spec.containers.iter();
        let conditions = status.iter().flat_map(|status| &status.conditions);
        let completed_at = status.and_then(|status| status.completion_time.as_ref());
        Self {
            name: request.name_any(),
            namespace: request.namespace().unwrap_or_default(),
            pod: request.spec.pod_name.clone(),
            requested_by: request.annotations().get(labels::REQUESTED_BY).cloned(),
            active: request.labels().contains_key(labels::CRR_ACTIVE),
            phase: phase(request).to_owned(),
            result: outcome(request).map(|outcome| match outcome {
                Outcome::Succeeded => "Succeeded",
                Outcome::Failed => "Failed",
            }),
            message: status.and_then(|status| status.message.clone()),
            created_at: request.creation_timestamp().map(|time| time.0),
            completed_at: completed_at.map(|time| time.0),
            containers: containers
                .map(|it| container_state(request, &it.name))
                .collect(),
            conditions: conditions
                .map(|it| Condition {
                    r#type: it.type_.clone(),
                    status: it.status.clone(),
                    reason: it.reason.clone(),
                    message: it.message.clone(),
                    since: it.last_transition_time.0,
                })
                .collect(),
            standing: lines(request),
        }
    }

    /// The request in a line.
    pub(super) fn head(&self) -> String {
        let by = by(self.requested_by.as_deref());
        format!("{}: restarts containers of pod {}{by}", self.name, self.pod)
    }

    /// The request among others of its pod: a line, and below it its conditions.
    pub(super) fn lines(&self) -> Vec<String> {
        let names: Vec<_> = self.containers.iter().map(|it| it.name.as_str()).collect();
        let active = if self.active { ", active" } else { "" };
        let result = self.result.map(|result| format!(", {result}"));
        let by = by(self.requested_by.as_deref());
        let head = format!(
            "crr/{}: {}{}{active}, restarts {}{by}",
            self.name,
            self.phase,
            result.unwrap_or_default(),
            names.join(", "),
        );
        let conditions = self.conditions.iter().map(|it| {
            let message = match it.message.as_str() {
                "" => String::new(),
                message => format!(": {message}"),
            };
            format!("  {}={} {}{message}", it.r#type, it.status, it.reason)
        });
        [head].into_iter().chain(conditions).collect()
    }
}

pub(super) fn by(user: Option<&str>) -> String {
    user.map(|user| format!(", requested by {user}"))
        .unwrap_or_default()
}

fn container_state(request: &ContainerRecreateRequest, name: &str) -> ContainerState {
    let states = request.status.iter();
    let mut states = states.flat_map(|status| &status.container_recreate_states);
    let state = states.find(|state| state.name == name);
    ContainerState {
        name: name.to_owned(),
        phase: state.map(|state| state.phase.clone()),
        message: state
            .and_then(|state| state.message.clone())
            .filter(|message| !message.is_empty()),
        is_killed: state.and_then(|state| state.is_killed),
    }
}

// === impl RequestExplained ===

impl RequestExplained {
    /// From the request and the events about it.
    pub(crate) fn new(request: &ContainerRecreateRequest, events: &[Event]) -> Self {
        let mut moments = Moment::of_conditions(request);
        moments.extend(events.iter().filter_map(Moment::of_event));
        moments.extend(Moment::of_request(request));
        Self {
            kind: "ContainerRecreateRequest",
            request: RequestStory::new(request),
            timeline: timeline::in_order(moments),
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.request.head()];
        let standing = self.request.standing.iter();
        lines.extend(standing.map(|line| format!("  {line}")));
        let subject = format!("crr/{}", self.request.name);
        lines.extend(timeline::lines(&self.timeline, &subject));
        lines
    }
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
                "name": "x", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z",
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
            "metadata": {}, "involvedObject": { "kind": "Pod", "name": "web" }, "reason": "Killing",
            "message": "Stopping app", "lastTimestamp": "2026-01-01T00:00:01Z",
        }))
        .unwrap();
        let explained = RequestExplained::new(&crr, &[event]);
        let told = [
            "x: restarts containers of pod web, requested by jane",
            "  web: FAILED (gone)",
            "Timeline:",
            "  2026-01-01T00:00:00Z  created",
            "  2026-01-01T00:00:01Z  pod/web event Killing: Stopping app",
            "  2026-01-01T00:00:02Z  Succeeded=False PodGone: gone",
            "  2026-01-01T00:00:03Z  completed",
        ];
        assert_eq!(explained.lines(), told);
        let shape = json!({
            "kind": "ContainerRecreateRequest",
            "request": {
                "name": "x", "namespace": "shop", "pod": "web", "requestedBy": "jane", "active": false,
                "phase": "Completed", "result": "Failed", "message": null,
                "createdAt": "2026-01-01T00:00:00Z", "completedAt": "2026-01-01T00:00:03Z",
                "containers": [{ "name": "app", "phase": null, "message": null, "isKilled": null }],
                "conditions": [{
                    "type": "Succeeded", "status": "False", "reason": "PodGone", "message": "gone",
                    "since": "2026-01-01T00:00:02Z",
                }],
            },
            "timeline": [
                { "time": "2026-01-01T00:00:00Z", "about": "crr/x", "what": "created" },
                { "time": "2026-01-01T00:00:01Z", "about": "pod/web", "what": "event Killing", "message": "Stopping app" },
                { "time": "2026-01-01T00:00:02Z", "about": "crr/x", "what": "Succeeded=False PodGone", "message": "gone" },
                { "time": "2026-01-01T00:00:03Z", "about": "crr/x", "what": "completed" },
            ],
        });
        assert_eq!(serde_json::to_value(explained).unwrap(), shape);
    }
}

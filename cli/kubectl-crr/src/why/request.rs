//! The story of a request, on its own or among others of its pod.

use jiff::Timestamp;
use k8s_api::crd::ContainerRecreateRequest as Crr;
use k8s_openapi::{
    api::core::v1::Event, apimachinery::pkg::apis::meta::v1::Condition as ConditionObject,
};
use kube::ResourceExt;
use model::{events::requested_by, labels};
use serde::Serialize;

use super::timeline::{self, Moment};
use crate::outcome::{Outcome, conditions, lines, message, outcome, phase, states};

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestStory {
    pub(super) name: String,
    namespace: String,
    pod: String,
    requested_by: Option<String>,
    /// True while the request occupies the pod: it has the label `active`.
    pub(super) active: bool,
    phase: String,
    result: Option<Outcome>,
    message: Option<String>,
    pub(super) created_at: Option<Timestamp>,
    completed_at: Option<Timestamp>,
    containers: Vec<ContainerState>,
    conditions: Vec<Condition>,
    /// One line per container and one about the request.
    #[serde(skip)]
    standing: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ContainerState {
    name: String,
    phase: Option<String>,
    message: Option<String>,
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

/// A request explained on its own.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RequestExplained {
    kind: &'static str,
    request: RequestStory,
    timeline: Vec<Moment>,
}

// === impl RequestStory ===

impl RequestStory {
    pub(super) fn new(request: &Crr) -> Self {
        let status = request.status.as_ref();
        let completed_at = status.and_then(|status| status.completion_time.as_ref());
        let containers = request.spec.containers.iter();
        let containers = containers.map(|it| ContainerState::new(request, &it.name));
        Self {
            name: request.name_any(),
            namespace: request.namespace().unwrap_or_default(),
            pod: request.spec.pod_name.clone(),
            requested_by: request.annotations().get(labels::REQUESTED_BY).cloned(),
            active: request.labels().contains_key(labels::CRR_ACTIVE),
            phase: phase(request).to_owned(),
            result: outcome(request),
            message: message(request).cloned(),
            created_at: request.creation_timestamp().map(|time| time.0),
            completed_at: completed_at.map(|time| time.0),
            containers: containers.collect(),
            conditions: conditions(request).iter().map(Condition::new).collect(),
            standing: lines(request),
        }
    }

    /// The request among others of its pod: a line, and below it its conditions.
    pub(super) fn lines(&self) -> Vec<String> {
        let names: Vec<_> = self.containers.iter().map(|it| it.name.as_str()).collect();
        let active = if self.active { ", active" } else { "" };
        let result = self.result.map(|result| format!(", {result:?}"));
        let result = result.unwrap_or_default();
        let by = requested_by(self.requested_by.as_deref());
        let (name, phase, names) = (&self.name, &self.phase, names.join(", "));
        let head = format!("crr/{name}: {phase}{result}{active}, restarts {names}{by}");
        let conditions = self.conditions.iter().map(|it| {
            let message = timeline::after_colon(&it.message);
            format!("  {}{message}", it.words())
        });
        [head].into_iter().chain(conditions).collect()
    }

    pub(super) fn moments(&self) -> Vec<Moment> {
        let moment = |at: Option<Timestamp>, what| Some(Moment::new(at?, &self.about(), what, ""));
        let created = moment(self.created_at, "created");
        let completed = moment(self.completed_at, "completed");
        created.into_iter().chain(completed).collect()
    }

    fn about(&self) -> String {
        format!("crr/{}", self.name)
    }
}

// === impl ContainerState ===

impl ContainerState {
    fn new(request: &Crr, name: &str) -> Self {
        let state = states(request).iter().find(|state| state.name == name);
        let message = state.and_then(|state| state.message.clone());
        Self {
            name: name.to_owned(),
            phase: state.map(|state| state.phase.clone()),
            message: message.filter(|message| !message.is_empty()),
            is_killed: state.and_then(|state| state.is_killed),
        }
    }
}

// === impl Condition ===

impl Condition {
    fn new(condition: &ConditionObject) -> Self {
        Self {
            r#type: condition.type_.clone(),
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            since: condition.last_transition_time.0,
        }
    }

    fn words(&self) -> String {
        format!("{}={} {}", self.r#type, self.status, self.reason)
    }
}

// === impl RequestExplained ===

impl RequestExplained {
    pub(crate) fn new(request: &Crr, events: &[Event]) -> Self {
        let story = RequestStory::new(request);
        let about = story.about();
        let moment = |it: &Condition| Moment::new(it.since, &about, &it.words(), &it.message);
        let conditions = story.conditions.iter().map(moment);
        let events = events.iter().filter_map(Moment::of_event);
        let moments = conditions.chain(events).chain(story.moments());
        Self {
            kind: "ContainerRecreateRequest",
            timeline: timeline::in_order(moments.collect()),
            request: story,
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let request = &self.request;
        let (name, pod) = (&request.name, &request.pod);
        let by = requested_by(request.requested_by.as_deref());
        let mut lines = vec![format!("{name}: restarts containers of pod {pod}{by}")];
        lines.extend(request.standing.iter().map(|line| format!("  {line}")));
        lines.extend(timeline::lines(&self.timeline, &request.about()));
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

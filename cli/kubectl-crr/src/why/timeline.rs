//! What happened when: events, conditions, beginnings and ends, in one order.

use jiff::Timestamp;
use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::{
    api::core::v1::{Event, ObjectReference},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{Resource, ResourceExt};
use serde::Serialize;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Moment {
    time: Timestamp,
    /// `pod/NAME` or `crr/NAME`.
    about: String,
    what: String,
    /// Whose event it is, where it is a container's.
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    /// How often, where more than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<i32>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
}

// === impl Moment ===

impl Moment {
    pub(super) fn new(
        time: Timestamp,
        about: impl Into<String>,
        what: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            time,
            about: about.into(),
            what: what.into(),
            container: None,
            count: None,
            message: message.into(),
        }
    }

    /// An event, at the last time it happened.
    pub(super) fn of_event(event: &Event) -> Option<Self> {
        let reason = event.reason.as_deref().unwrap_or_default();
        let series = event.series.as_ref().and_then(|series| series.count);
        let message = event.message.as_deref().unwrap_or_default().trim();
        let about = name_of(&event.involved_object);
        let what = format!("event {reason}");
        Some(Self {
            container: container_of(event).map(str::to_owned),
            count: series.or(event.count).filter(|count| *count > 1),
            ..Self::new(time_of(event)?, about, what, message)
        })
    }

    fn of_condition(about: &str, condition: &Condition) -> Self {
        let Condition {
            type_,
            status,
            reason,
            message,
            ..
        } = condition;
        let time = condition.last_transition_time.0;
        Self::new(time, about, format!("{type_}={status} {reason}"), message)
    }

    /// When a request was made, and when it ended.
    pub(super) fn of_request(request: &ContainerRecreateRequest) -> Vec<Self> {
        let about = about_request(request);
        let created = request.creation_timestamp();
        let status = request.status.as_ref();
        let ended = status.and_then(|status| status.completion_time.as_ref());
        let created = created.map(|time| Self::new(time.0, about.clone(), "created", ""));
        let ended = ended.map(|time| Self::new(time.0, about, "completed", ""));
        created.into_iter().chain(ended).collect()
    }

    /// When its conditions became what they are.
    pub(super) fn of_conditions(request: &ContainerRecreateRequest) -> Vec<Self> {
        let about = about_request(request);
        let conditions = request.status.iter().flat_map(|status| &status.conditions);
        conditions
            .map(|condition| Self::of_condition(&about, condition))
            .collect()
    }
}

/// In order; what has the same time stays as it is.
pub(super) fn in_order(mut moments: Vec<Moment>) -> Vec<Moment> {
    moments.sort_by_key(|moment| moment.time);
    moments
}

/// One line each; whom it is about is told where it is not `subject`.
pub(super) fn lines(moments: &[Moment], subject: &str) -> Vec<String> {
    let mut lines = vec!["Timeline:".to_owned()];
    lines.extend(moments.iter().map(|moment| {
        let about = match moment.about.as_str() {
            about if about == subject => String::new(),
            about => format!("{about} "),
        };
        let message = match moment.message.as_str() {
            "" => String::new(),
            message => format!(": {message}"),
        };
        let container = moment.container.as_ref().map(|name| format!(" of {name}"));
        let container = container.unwrap_or_default();
        let count = moment.count.map(|count| format!(" ({count} times)"));
        let count = count.unwrap_or_default();
        let Moment { time, what, .. } = moment;
        format!("  {time}  {about}{what}{container}{count}{message}")
    }));
    lines
}

fn about_request(request: &ContainerRecreateRequest) -> String {
    format!("crr/{}", request.name_any())
}

/// When it happened last: the kubelet counts, we tell each once.
pub(super) fn time_of(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref();
    let series = series.and_then(|series| series.last_observed_time.as_ref());
    let exact = series.or(event.event_time.as_ref()).map(|time| time.0);
    let coarse = event
        .last_timestamp
        .as_ref()
        .or(event.first_timestamp.as_ref());
    let created = event.metadata.creation_timestamp.as_ref();
    exact.or(coarse.or(created).map(|time| time.0))
}

/// The container that an event of a pod is about: `spec.containers{NAME}`.
pub(super) fn container_of(event: &Event) -> Option<&str> {
    let path = event.involved_object.field_path.as_deref()?;
    path.split_once('{')?.1.strip_suffix('}')
}

fn name_of(object: &ObjectReference) -> String {
    let kind = object.kind.as_deref().unwrap_or_default();
    let short = if kind == ContainerRecreateRequest::kind(&()) {
        "crr".to_owned()
    } else {
        kind.to_lowercase()
    };
    format!("{short}/{}", object.name.as_deref().unwrap_or_default())
}

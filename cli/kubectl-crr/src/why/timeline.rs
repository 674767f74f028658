//! The timeline: events, conditions, beginnings and ends in one order.

use jiff::Timestamp;
use k8s_api::crd::ContainerRecreateRequest as Crr;
use k8s_openapi::api::core::v1::{Event, ObjectReference};
use kube::Resource;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Moment {
    time: Timestamp,
    /// `pod/NAME` or `crr/NAME`.
    about: String,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
    /// Number of occurrences, if more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<i32>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
}

// === impl Moment ===

impl Moment {
    pub(super) fn new(time: Timestamp, about: &str, what: &str, message: &str) -> Self {
        Self {
            time,
            about: about.to_owned(),
            what: what.to_owned(),
            container: None,
            count: None,
            message: message.to_owned(),
        }
    }

    /// An event at its last occurrence.
    pub(super) fn of_event(event: &Event) -> Option<Self> {
        let what = format!("event {}", event.reason.as_deref().unwrap_or_default());
        let message = event.message.as_deref().unwrap_or_default().trim();
        let series = event.series.as_ref().and_then(|series| series.count);
        let about = name_of(&event.involved_object);
        Some(Self {
            container: container_of(event).map(str::to_owned),
            count: series.or(event.count).filter(|count| *count > 1),
            ..Self::new(time_of(event)?, &about, &what, message)
        })
    }

    /// A line; the object is left out if it is `subject`.
    fn line(&self, subject: &str) -> String {
        let mut line = format!("  {}  ", self.time);
        if self.about != subject {
            line += &format!("{} ", self.about);
        }
        line += &self.what;
        if let Some(container) = &self.container {
            line += &format!(" of {container}");
        }
        if let Some(count) = self.count {
            line += &format!(" ({count} times)");
        }
        line + &after_colon(&self.message)
    }
}

/// By time; the order of simultaneous moments is kept.
pub(super) fn in_order(mut moments: Vec<Moment>) -> Vec<Moment> {
    moments.sort_by_key(|moment| moment.time);
    moments
}

pub(super) fn lines(moments: &[Moment], subject: &str) -> Vec<String> {
    let lines = moments.iter().map(|moment| moment.line(subject));
    ["Timeline:".to_owned()].into_iter().chain(lines).collect()
}

/// `: MESSAGE`; empty without a message.
pub(super) fn after_colon(message: &str) -> String {
    match message {
        "" => String::new(),
        message => format!(": {message}"),
    }
}

/// Time of the last occurrence; the kubelet counts occurrences, we emit each event once.
pub(super) fn time_of(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref();
    let series = series.and_then(|series| series.last_observed_time.as_ref());
    let exact = series.or(event.event_time.as_ref()).map(|time| time.0);
    let last = event.last_timestamp.as_ref();
    let coarse = last.or(event.first_timestamp.as_ref());
    let coarse = coarse.or(event.metadata.creation_timestamp.as_ref());
    exact.or(coarse.map(|time| time.0))
}

/// The container of an event about a pod: `spec.containers{NAME}`.
pub(super) fn container_of(event: &Event) -> Option<&str> {
    let path = event.involved_object.field_path.as_deref()?;
    path.split_once('{')?.1.strip_suffix('}')
}

fn name_of(object: &ObjectReference) -> String {
    let kind = object.kind.as_deref().unwrap_or_default();
    let kind = match kind == Crr::kind(&()) {
        true => "crr".to_owned(),
        false => kind.to_lowercase(),
    };
    format!("{kind}/{}", object.name.as_deref().unwrap_or_default())
}

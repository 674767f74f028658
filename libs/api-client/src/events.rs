//! Kubernetes events with fixed names: one that exists already is not published a second time.
//!
//! Owns the form of an event and the retries of its publication. Callers decide which events there are.

use std::{borrow::Cow, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{MicroTime, Time},
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use model::retry::Doubling;
use tokio::time::sleep;

use crate::WriteError;

/// The longest message, in bytes, that the API server accepts in an event with an `eventTime` (NoteLengthLimit in its
/// validation).
const LONGEST_MESSAGE: usize = 1024;

/// End of a shortened message.
const CUT: &str = " …";

/// Retries of a publication, and the pauses before them.
const RETRIES: u32 = 3;
const PAUSES: Doubling = Doubling::new(Duration::from_millis(200), Duration::from_millis(800));

/// An event to publish.
#[derive(Clone, Debug)]
pub struct EventDraft<'a> {
    /// `reportingComponent`.
    pub component: &'static str,
    /// `source.component`, which `kubectl describe` shows.
    pub source: &'static str,
    /// `metadata.name`.
    pub name: &'a str,
    /// The object; its namespace is the event's.
    pub about: ObjectReference,
    pub is_warning: bool,
    pub reason: &'a str,
    pub message: &'a str,
}

/// Calls `publish`, a few times if its errors are transient.
///
/// # Errors
/// The first permanent error, or that of the last call.
pub async fn publish_with_retry<P>(mut publish: impl FnMut() -> P) -> Result<(), WriteError>
where
    P: Future<Output = Result<(), WriteError>>,
{
    for retry in 0..RETRIES {
        match publish().await {
            Err(error) if !error.is_permanent() => sleep(PAUSES.pause(retry)).await,
            result => return result,
        }
    }
    publish().await
}

/// Publishes an event. An existing event with its name stays as it is.
///
/// # Errors
/// The API server rejects it, or does not answer.
pub async fn publish_event(
    client: &Client,
    draft: EventDraft<'_>,
    now: Timestamp,
) -> Result<(), WriteError> {
    let namespace = draft.about.namespace.clone().unwrap_or_default();
    let kind = if draft.is_warning {
        "Warning"
    } else {
        "Normal"
    };
    let component = Some(draft.component.to_owned());
    let source = Some(draft.source.to_owned());
    let reason = Some(draft.reason.to_owned());
    let event = Event {
        metadata: ObjectMeta {
            name: Some(draft.name.to_owned()),
            namespace: Some(namespace.clone()),
            ..ObjectMeta::default()
        },
        involved_object: draft.about,
        type_: Some(kind.to_owned()),
        reason: reason.clone(),
        message: Some(shortened(draft.message).into_owned()),
        action: reason,
        count: Some(1),
        event_time: Some(MicroTime(now)),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        reporting_component: component.clone(),
        reporting_instance: component,
        source: Some(EventSource {
            component: source,
            ..EventSource::default()
        }),
        ..Event::default()
    };
    let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
    match events.create(&PostParams::default(), &event).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The message, shortened to what the API server accepts.
fn shortened(message: &str) -> Cow<'_, str> {
    if message.len() <= LONGEST_MESSAGE {
        return message.into();
    }
    let end = message.floor_char_boundary(LONGEST_MESSAGE - CUT.len());
    format!("{}{CUT}", &message[..end]).into()
}

#[cfg(test)]
mod tests;

//! Kubernetes events with names of their own, so that none is told twice.
//!
//! Owns an event's form and how often it is tried. Who is told what is not known here.

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
use tokio::time::sleep;

use crate::WriteError;

/// The longest message, in bytes, that the API server takes of an event with an `eventTime` (NoteLengthLimit in its
/// validation).
const LONGEST_MESSAGE: usize = 1024;

/// What stands in place of a message's end.
const CUT: &str = " …";

/// How often an event is tried to be told, and the first pause between; each is twice the one before.
const TRIES: u32 = 4;
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// One event.
#[derive(Clone, Debug)]
pub struct Telling<'a> {
    /// Who tells it: `reportingComponent`.
    pub component: &'static str,
    /// As whom older clients know who tells it: `source.component`, which `kubectl describe` shows.
    pub source: &'static str,
    /// `metadata.name`.
    pub name: &'a str,
    /// The object, whose namespace is the event's.
    pub about: ObjectReference,
    pub is_warning: bool,
    pub reason: &'a str,
    pub message: &'a str,
}

/// Tells an event by `tell`, and again when that may help: the API server is away or busy.
///
/// # Errors
/// That of the last try, or one that the next would meet as well.
pub async fn insist<T>(mut tell: impl FnMut() -> T) -> Result<(), WriteError>
where
    T: Future<Output = Result<(), WriteError>>,
{
    let mut pause = AGAIN_AFTER;
    for _ in 1..TRIES {
        match tell().await {
            Err(error) if !error.is_final() => sleep(pause).await,
            end => return end,
        }
        pause *= 2;
    }
    tell().await
}

/// Tells an event. One of that name that is there already is left as it is.
///
/// # Errors
/// The API server does not take it.
pub async fn tell(
    client: &Client,
    telling: Telling<'_>,
    now: Timestamp,
) -> Result<(), kube::Error> {
    let namespace = telling.about.namespace.clone().unwrap_or_default();
    let kind = if telling.is_warning {
        "Warning"
    } else {
        "Normal"
    };
    let component = Some(telling.component.to_owned());
    let source = Some(telling.source.to_owned());
    let reason = Some(telling.reason.to_owned());
    let event = Event {
        metadata: ObjectMeta {
            name: Some(telling.name.to_owned()),
            namespace: Some(namespace.clone()),
            ..ObjectMeta::default()
        },
        involved_object: telling.about,
        type_: Some(kind.to_owned()),
        reason: reason.clone(),
        message: Some(shortened(telling.message).into_owned()),
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
        Err(error) => Err(error),
    }
}

/// A message as long as the API server takes it.
fn shortened(message: &str) -> Cow<'_, str> {
    if message.len() <= LONGEST_MESSAGE {
        return message.into();
    }
    let end = message.floor_char_boundary(LONGEST_MESSAGE - CUT.len());
    format!("{}{CUT}", &message[..end]).into()
}

#[cfg(test)]
mod tests;

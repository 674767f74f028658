//! Kubernetes events with names of their own, so that none is told twice.

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{MicroTime, Time},
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};

/// One event.
#[derive(Clone, Debug)]
pub struct Telling<'a> {
    /// Who tells it.
    pub component: &'static str,
    /// `metadata.name`.
    pub name: &'a str,
    /// The object, whose namespace is the event's.
    pub about: ObjectReference,
    pub is_warning: bool,
    pub reason: &'a str,
    pub message: &'a str,
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
        message: Some(telling.message.to_owned()),
        action: reason,
        count: Some(1),
        event_time: Some(MicroTime(now)),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        reporting_component: component.clone(),
        reporting_instance: component.clone(),
        source: Some(EventSource {
            component,
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

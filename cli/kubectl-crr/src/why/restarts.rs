//! Requested restarts of a container, which tell a requested end from a crash.
//!
//! A request names its stops while it exists (`isKilled`), its event on the pod for an hour. Instances are compared by
//! container id; times of two machines only if the request, and so the id, is gone.

use jiff::{SignedDuration, Timestamp};
use k8s_api::crd::ContainerRecreateRequest as Crr;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Event};
use kube::ResourceExt;
use model::{events::Killing, labels};
use serde::Serialize;

use super::timeline::{container_of, time_of};
use crate::outcome::{outcome, states};

/// The largest difference between the clocks of scheduler and kubelet, whose times have whole seconds.
const SLACK: SignedDuration = SignedDuration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestedRestart {
    pub(super) request: String,
    pub(super) requested_by: Option<String>,
    /// Time of the stop's order; without its event, of the request's creation.
    pub(super) at: Option<Timestamp>,
    /// Id of the instance to stop, if the request exists.
    #[serde(skip)]
    stopped: Option<String>,
    /// Id of the instance that replaced it.
    #[serde(skip)]
    made: Option<String>,
}

/// An event `Killing` that a request caused on its pod.
struct KillingEvent<'a> {
    container: Option<&'a str>,
    crr_uid: &'a str,
    message: Killing,
    at: Option<Timestamp>,
}

/// The known requested restarts of a container, oldest first.
pub(super) fn requested_restarts(
    container: &str,
    requests: &[Crr],
    events: &[Event],
) -> Vec<RequestedRestart> {
    let mut killings: Vec<_> = events.iter().filter_map(killing).collect();
    killings.retain(|killing| killing.container == Some(container));
    let of_requests = requests.iter();
    let of_requests = of_requests.filter_map(|it| of_request(it, container, &killings));
    let uids: Vec<_> = requests.iter().filter_map(ResourceExt::uid).collect();
    let exists = |uid: &str| uids.iter().any(|it| it == uid);
    let of_deleted = killings.iter().filter(|killing| !exists(killing.crr_uid));
    let of_deleted = of_deleted.map(|killing| RequestedRestart {
        request: killing.message.crr.to_string(),
        requested_by: killing.message.requested_by.clone(),
        at: killing.at,
        stopped: None,
        made: None,
    });
    let mut restarts: Vec<_> = of_requests.chain(of_deleted).collect();
    restarts.sort_by_key(|restart| restart.at);
    restarts
}

/// The restart that ended an instance; `status` is the container's.
pub(super) fn cause_of<'a>(
    end: &ContainerStateTerminated,
    status: &ContainerStatus,
    restarts: &'a [RequestedRestart],
) -> Option<&'a RequestedRestart> {
    let is_last = status.state.as_ref().is_some_and(|it| it.running.is_some());
    restarts.iter().rev().find(|restart| {
        let is_stopped = restart.stopped.is_some() && restart.stopped == end.container_id;
        let is_made = restart.made.is_some() && restart.made == status.container_id && is_last;
        is_stopped || is_made || (restart.stopped.is_none() && is_at_the_time(restart, end))
    })
}

/// True if the stop was ordered in the lifetime of the instance.
fn is_at_the_time(restart: &RequestedRestart, end: &ContainerStateTerminated) -> bool {
    let (Some(at), Some(end_at)) = (restart.at, &end.finished_at) else {
        return false;
    };
    let began = end.started_at.as_ref().is_none_or(|time| time.0 <= at);
    began && at <= end_at.0.saturating_add(SLACK).unwrap_or(Timestamp::MAX)
}

fn of_request(
    request: &Crr,
    container: &str,
    killings: &[KillingEvent<'_>],
) -> Option<RequestedRestart> {
    let mut wanted = request.spec.containers.iter();
    let wanted = wanted.find(|wanted| wanted.name == container)?;
    let uid = request.metadata.uid.as_deref().unwrap_or_default();
    let killing = killings.iter().find(|killing| killing.crr_uid == uid);
    let mut states = states(request).iter();
    let is_killed = states.any(|it| it.name == container && it.is_killed == Some(true));
    // The status has `isKilled` only at the end; until then the event shows the stop.
    let is_being_killed = killing.is_some() && outcome(request).is_none();
    if !is_killed && !is_being_killed {
        return None;
    }
    let status = request.status.iter();
    let snapshot = status.flat_map(|it| &it.container_status_snapshot);
    let made = snapshot.into_iter().find(|made| made.name == container);
    let created = request.creation_timestamp().map(|time| time.0);
    let context = wanted.status_context.as_ref();
    Some(RequestedRestart {
        request: request.name_any(),
        requested_by: request.annotations().get(labels::REQUESTED_BY).cloned(),
        at: killing.and_then(|killing| killing.at).or(created),
        stopped: context.map(|it| it.container_id.clone()),
        made: made.map(|made| made.container_id.clone()),
    })
}

/// Reads an event named `crr-<uid>-killing-<position>`.
fn killing(event: &Event) -> Option<KillingEvent<'_>> {
    let name = event.metadata.name.as_deref()?.strip_prefix("crr-")?;
    let (crr_uid, _position) = name.rsplit_once("-killing-")?;
    Some(KillingEvent {
        container: container_of(event),
        crr_uid,
        message: event.message.as_deref()?.parse().ok()?,
        at: time_of(event),
    })
}

//! Which restarts of a container were asked for, by which request and by whom: so that they are told from crashes.
//!
//! A request says it itself while it is there (`isKilled`); after that its event on the pod does, for an hour. Identity
//! is the container id; times of two machines are compared only where the request, and so the id, is gone.

use jiff::{SignedDuration, Timestamp};
use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Event};
use kube::ResourceExt;
use model::labels;
use serde::Serialize;

use super::timeline::{container_of, time_of};
use crate::outcome::outcome;

/// How far the scheduler's clock may be from the kubelet's, whose times have whole seconds.
const SLACK: SignedDuration = SignedDuration::from_secs(2);

/// A stop that a request asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestedRestart {
    pub(super) request: String,
    pub(super) requested_by: Option<String>,
    /// When the stop was ordered; where its event is gone, when the request was made.
    pub(super) at: Option<Timestamp>,
    /// The instance that was to be stopped, where the request is still there.
    #[serde(skip)]
    stopped: Option<String>,
    /// The instance that came instead.
    #[serde(skip)]
    made: Option<String>,
}

/// The event `Killing` that a request causes on its pod.
struct Killing<'a> {
    uid: &'a str,
    request: &'a str,
    requested_by: Option<&'a str>,
    at: Option<Timestamp>,
}

/// The restarts of a container that are known to be asked for, oldest first.
pub(super) fn requested_restarts(
    container: &str,
    requests: &[ContainerRecreateRequest],
    events: &[Event],
) -> Vec<RequestedRestart> {
    let killings: Vec<_> = events
        .iter()
        .filter_map(|event| killing(event, container))
        .collect();
    let mut restarts: Vec<_> = requests
        .iter()
        .filter_map(|request| of_request(request, container, &killings))
        .collect();
    let is_there = |uid| {
        let mut uids = requests.iter().filter_map(|it| it.metadata.uid.as_deref());
        uids.any(|it| it == uid)
    };
    let of_gone_requests = killings.iter().filter(|killing| !is_there(killing.uid));
    restarts.extend(of_gone_requests.map(|killing| RequestedRestart {
        request: killing.request.to_owned(),
        requested_by: killing.requested_by.map(str::to_owned),
        at: killing.at,
        stopped: None,
        made: None,
    }));
    restarts.sort_by_key(|restart| restart.at);
    restarts
}

/// The one that ended that instance. `status` is the container's.
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

/// Whether the stop was ordered in the life of that instance, towards its end.
fn is_at_the_time(restart: &RequestedRestart, end: &ContainerStateTerminated) -> bool {
    let (Some(at), Some(end_at)) = (restart.at, &end.finished_at) else {
        return false;
    };
    let began = end.started_at.as_ref().is_none_or(|time| time.0 <= at);
    began && at <= end_at.0.saturating_add(SLACK).unwrap_or(Timestamp::MAX)
}

fn of_request(
    request: &ContainerRecreateRequest,
    container: &str,
    killings: &[Killing<'_>],
) -> Option<RequestedRestart> {
    let mut asked = request.spec.containers.iter();
    let asked = asked.find(|asked| asked.name == container)?;
    let uid = request.metadata.uid.as_deref().unwrap_or_default();
    let killing = killings.iter().find(|killing| killing.uid == uid);
    let status = request.status.as_ref();
    let mut states = status.iter().flat_map(|it| &it.container_recreate_states);
    let state = states.find(|state| state.name == container);
    let is_killed = state.is_some_and(|state| state.is_killed == Some(true));
    // What was stopped is written at the end only; until then the event tells it.
    let is_being_killed = killing.is_some() && outcome(request).is_none();
    if !is_killed && !is_being_killed {
        return None;
    }
    let mut snapshot = status.iter().flat_map(|it| &it.container_status_snapshot);
    let made = snapshot.find(|made| made.name == container);
    let created = request.creation_timestamp().map(|time| time.0);
    Some(RequestedRestart {
        request: request.name_any(),
        requested_by: request.annotations().get(labels::REQUESTED_BY).cloned(),
        at: killing.and_then(|killing| killing.at).or(created),
        stopped: asked
            .status_context
            .as_ref()
            .map(|it| it.container_id.clone()),
        made: made.map(|made| made.container_id.clone()),
    })
}

/// Reads `crr-<uid>-killing-<position>`: "Stopping container X by ContainerRecreateRequest Y, requested by Z".
fn killing<'a>(event: &'a Event, container: &str) -> Option<Killing<'a>> {
    let name = event.metadata.name.as_deref()?.strip_prefix("crr-")?;
    let (uid, _position) = name.rsplit_once("-killing-")?;
    let named = container_of(event)?;
    let message = event.message.as_deref()?;
    let (_, by) = message.split_once(" by ContainerRecreateRequest ")?;
    let (request, requested_by) = match by.split_once(", requested by ") {
        Some((request, user)) => (request, Some(user)),
        None => (by, None),
    };
    (named == container).then(|| Killing {
        uid,
        request,
        requested_by,
        at: time_of(event),
    })
}

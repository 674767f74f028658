//! Watch events, as events of the machine.
//!
//! Owns the conversion. An object that cannot be read is logged here.

use api_client::{ObjectKey, WatchEvent};
use barrier_rules::Event;
use k8s_api::convert::{barrier_map_from_object, launch_pod_from_object};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use model::{
    error_chain::ErrorChain,
    ids::PodKey,
    launch::{BARRIER_SUFFIX, LaunchPod},
};
use tracing::warn;

pub(crate) fn pod_event(event: WatchEvent<Pod>) -> Event {
    match event {
        WatchEvent::ListBegun => Event::PodListBegun,
        WatchEvent::Seen(pod) => match parse_pod(&pod) {
            Some(launch) => Event::PodSeen(launch),
            None => Event::PodUnreadable(key_of(&ObjectKey::of(&pod))),
        },
        WatchEvent::Unreadable(key) => Event::PodUnreadable(key_of(&key)),
        WatchEvent::Gone(key) => Event::PodGone {
            pod: key_of(&key),
            uid: key.uid.as_str().into(),
        },
        WatchEvent::ListEnded => Event::PodListEnded,
    }
}

/// `None` for a ConfigMap whose name belongs to no pod.
pub(crate) fn map_event(event: WatchEvent<ConfigMap>) -> Option<Event> {
    Some(match event {
        WatchEvent::ListBegun => Event::MapListBegun,
        WatchEvent::Seen(map) => Event::MapSeen {
            pod: pod_of(&ObjectKey::of(&map))?,
            map: barrier_map_from_object(&map),
        },
        WatchEvent::Unreadable(key) => Event::MapUnreadable(pod_of(&key)?),
        WatchEvent::Gone(key) => Event::MapGone {
            pod: pod_of(&key)?,
            uid: key.uid,
        },
        WatchEvent::ListEnded => Event::MapListEnded,
    })
}

/// The pod's launch; `None`, and a log line, if it cannot be read.
pub(crate) fn parse_pod(object: &Pod) -> Option<Box<LaunchPod>> {
    launch_pod_from_object(object)
        .inspect_err(|error| {
            let pod = key_of(&ObjectKey::of(object));
            warn!(%pod, error = %ErrorChain(error), "Failed to read the launch of a pod");
        })
        .ok()
        .map(Box::new)
}

fn key_of(key: &ObjectKey) -> PodKey {
    PodKey {
        namespace: key.namespace.as_str().into(),
        name: key.name.as_str().into(),
    }
}

/// The pod that a ConfigMap is named after.
fn pod_of(map: &ObjectKey) -> Option<PodKey> {
    Some(PodKey {
        namespace: map.namespace.as_str().into(),
        name: map.name.strip_suffix(BARRIER_SUFFIX)?.into(),
    })
}

//! The Kubernetes events of a launch: none unless something is wrong, each told once.
//!
//! Their names are derived from the pod and the level, so that a new leader cannot tell one twice.

use std::time::Duration;

use model::{
    ids::ContainerName,
    launch::{BARRIER_SUFFIX, LaunchPod, Priority},
};

use crate::Waiting;

/// A warning about a pod, or one container of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchEvent {
    /// `metadata.name`.
    pub name: String,
    pub container: Option<ContainerName>,
    pub reason: &'static str,
    pub message: String,
}

/// A level is not up for too long.
pub(crate) fn stuck(
    pod: &LaunchPod,
    level: Priority,
    waiting: &[Waiting],
    after: Duration,
) -> LaunchEvent {
    let reasons: Vec<_> = waiting
        .iter()
        .map(|waiting| format!("container {} is {}", waiting.container, what(&waiting.why)))
        .collect();
    let levels = pod.containers.iter().map(|container| container.priority);
    let place = levels.filter(|other| *other > level).count();
    LaunchEvent {
        name: format!("launch-{}-stuck-{place}", pod.pod.uid),
        container: waiting.first().map(|waiting| waiting.container.clone()),
        reason: "LaunchStuck",
        message: format!(
            "launch level {level} is not up after {} s: {}",
            after.as_secs(),
            reasons.join("; "),
        ),
    }
}

/// As the end of a sentence.
fn what(why: &str) -> String {
    if why.starts_with("running") || why.starts_with("ended") {
        why.to_owned()
    } else {
        format!("waiting: {why}")
    }
}

/// The API server does not take what opens the levels; `why` is its word.
pub fn refused(pod: &LaunchPod, why: &str) -> LaunchEvent {
    LaunchEvent {
        name: format!("launch-{}-refused", pod.pod.uid),
        container: None,
        reason: "LaunchBlocked",
        message: format!("the launch barriers of the pod cannot be opened: {why}"),
    }
}

/// The pod's ConfigMap cannot be made: there is one that we must not touch.
pub(crate) fn blocked(pod: &LaunchPod) -> LaunchEvent {
    let map = format!("{}{BARRIER_SUFFIX}", pod.pod.key.name);
    LaunchEvent {
        name: format!("launch-{}-blocked", pod.pod.uid),
        container: None,
        reason: "LaunchBlocked",
        message: format!(
            "ConfigMap {map} is no launch barrier: until it has another name, containers cannot start, or start in any order"
        ),
    }
}

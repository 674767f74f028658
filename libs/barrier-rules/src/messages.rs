//! The Kubernetes events of a launch: warnings only, each published once.
//!
//! Owns their texts. Their names are derived from the pod and the level, so that a new leader cannot publish one twice.

use std::time::Duration;

use model::{
    ids::ContainerName,
    launch::{BARRIER_SUFFIX, LaunchPod, Priority},
};

use crate::container::Waiting;

/// A warning about a pod, or one container of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchEvent {
    /// `metadata.name`.
    pub name: String,
    pub container: Option<ContainerName>,
    pub reason: &'static str,
    pub message: String,
}

/// The level is not up after `after`.
pub(crate) fn stuck(
    pod: &LaunchPod,
    level: Priority,
    waiting: &[Waiting],
    after: Duration,
) -> LaunchEvent {
    let reasons = waiting.iter().map(|Waiting { container, why }| {
        let predicate = as_predicate(why);
        format!("container {container} is {predicate}")
    });
    let reasons = reasons.collect::<Vec<_>>().join("; ");
    let levels = pod.containers.iter().map(|container| container.priority);
    let place = levels.filter(|other| *other > level).count();
    LaunchEvent {
        name: format!("launch-{}-stuck-{place}", pod.pod.uid),
        container: waiting.first().map(|waiting| waiting.container.clone()),
        reason: "LaunchStuck",
        message: format!(
            "launch level {level} is not up after {} s: {reasons}",
            after.as_secs()
        ),
    }
}

/// The reason as the end of a sentence that begins with the container's name.
fn as_predicate(why: &str) -> String {
    if why.starts_with("running") || why.starts_with("ended") {
        why.to_owned()
    } else {
        format!("waiting: {why}")
    }
}

/// The API server rejects the writes that open the levels; `why` is its message.
pub(crate) fn refused(pod: &LaunchPod, why: &str) -> LaunchEvent {
    LaunchEvent {
        name: format!("launch-{}-refused", pod.pod.uid),
        container: None,
        reason: "LaunchBlocked",
        message: format!("the launch barriers of the pod cannot be opened: {why}"),
    }
}

/// The pod's ConfigMap cannot be created: a foreign ConfigMap has its name.
pub fn blocked(pod: &LaunchPod) -> LaunchEvent {
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

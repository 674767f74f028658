//! Launch priorities: the words that admission, the barrier-manager and the nodes share (document 002).

use std::{collections::BTreeSet, fmt};

use crate::{
    ids::{ContainerId, ContainerName, PodKey, PodUid},
    pod::Pod,
};

/// The variable by which a user gives a container its priority.
pub const PRIORITY_VARIABLE: &str = "KRUISE_CONTAINER_PRIORITY";
/// The variable that keeps a container waiting until its key is there.
pub const BARRIER_VARIABLE: &str = "KRUISE_CONTAINER_BARRIER";
/// Ends the name of the ConfigMap with a pod's keys; the pod's name begins it.
pub const BARRIER_SUFFIX: &str = "-barrier";

/// Begins a priority's key.
const KEY_PREFIX: &str = "p_";

/// A container's launch priority: higher starts first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(i32);

// === impl Priority ===

impl Priority {
    pub const fn new(priority: i32) -> Self {
        Self(priority)
    }

    /// The key in the pod's ConfigMap whose presence lets containers of this priority start.
    pub fn key(self) -> String {
        self.to_string()
    }

    /// The priority whose key this is; `None` where it is nobody's.
    pub fn from_key(key: &str) -> Option<Self> {
        let priority = Self(key.strip_prefix(KEY_PREFIX)?.parse().ok()?);
        // One priority has one key: neither `p_+1` nor `p_01`.
        (priority.key() == key).then_some(priority)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KEY_PREFIX}{}", self.0)
    }
}

/// A node's word that it started a container of a pod with a barrier. It may be lost; pod status tells it later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub pod: PodKey,
    pub pod_uid: PodUid,
    pub container: ContainerName,
    pub container_id: ContainerId,
}

/// A pod with launch barriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchPod {
    pub pod: Pod,
    /// The containers that have a barrier, in the pod's order.
    pub containers: Vec<LaunchContainer>,
    /// The lowest level that the kubelet was told of.
    pub told: Option<Priority>,
    /// Whether all levels were said to be open.
    pub is_completed: bool,
    /// W3C `traceparent` of the pod's creation.
    pub trace_parent: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchContainer {
    pub name: ContainerName,
    pub priority: Priority,
    /// Whether only pod status can say that it is up: it has a readiness probe, a startup probe or a postStart hook.
    pub needs_status: bool,
}

/// The ConfigMap that holds a pod's open levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarrierMap {
    pub uid: String,
    pub version: String,
    /// The pods that own it; one, as we make it.
    pub owners: Vec<PodUid>,
    /// Whether it bears our label.
    pub is_labelled: bool,
    /// It was deleted, and is there until its finalizers are done.
    pub is_being_deleted: bool,
    pub keys: BTreeSet<Priority>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_one_priority_and_a_priority_one_key() {
        for (priority, key) in [
            (0, "p_0"),
            (-1, "p_-1"),
            (i32::MAX, "p_2147483647"),
            (i32::MIN, "p_-2147483648"),
        ] {
            assert_eq!(Priority::new(priority).key(), key);
            assert_eq!(Priority::from_key(key), Some(Priority::new(priority)));
        }
        for key in [
            "",
            "p",
            "p_",
            "0",
            "p_+1",
            "p_01",
            "p_-0",
            "p_x",
            "p_2147483648",
            "é_1",
        ] {
            assert_eq!(Priority::from_key(key), None, "{key}");
        }
    }
}

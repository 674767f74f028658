//! Everything the machine may want done.
//!
//! Owns the effects. The requests among them are idempotent: every write names the uid of the object that it changes, and
//! none takes a key away from a launch.

use std::{collections::BTreeSet, time::Duration};

use model::{
    ids::{ContainerName, PodKey, PodUid},
    launch::Priority,
};

use crate::messages::LaunchEvent;

/// Something to do for one pod, in the order of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    pub pod: PodKey,
    pub uid: PodUid,
    pub action: Action,
}

/// What is done. The last five report what a launch does, for traces, metrics and the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write to the API server; `Event::Written` answers. At most one request per pod is under way.
    Write(Write),
    /// Fetch the pod's ConfigMap; `Event::Fetched` answers.
    FetchMap,
    /// Publish a Kubernetes event about the pod; no answer. Its name is derived, so that a second one is the same object.
    PublishEvent(LaunchEvent),
    /// A node's report of a started container was accepted.
    StartAccepted,
    /// The pod's first level is waited for.
    LaunchBegun {
        /// W3C `traceparent` of the pod's creation.
        traceparent: Option<String>,
    },
    /// A level is waited for, with these containers.
    LevelBegun {
        level: Priority,
        containers: Vec<ContainerName>,
    },
    /// The level is not waited for any more.
    LevelEnded { level: Priority, took: Duration },
    /// No level is waited for any more: all are up, or the launch cannot continue, or the pod is gone.
    LaunchEnded { is_launched: bool },
}

/// A write of the API server's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Create the pod's ConfigMap, owned by it.
    CreateMap { keys: BTreeSet<Priority> },
    /// Delete the ConfigMap of an earlier pod of that name.
    DeleteMap { uid: String },
    /// Remove the keys of such a ConfigMap that a finalizer keeps: they would let this pod's containers start at once.
    EmptyMap { uid: String },
    /// Open levels, and label the ConfigMap.
    AddKeys {
        keys: BTreeSet<Priority>,
        uid: String,
    },
    /// Annotate the pod with its lowest open level, so that the kubelet syncs it now; and, once every container has
    /// started, with the completion of its launch.
    Nudge { level: Priority, completes: bool },
}

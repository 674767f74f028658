//! A request or a pod explained: how it stands, why, and what happened when.
//!
//! Owns what is told and in which words. Each explanation is first a story (what `-o json` prints; its shape is in
//! `docs/kubectl-crr.md`) and then lines. Nothing is asked here, and no clock is read.

mod container;
mod gate;
mod launch;
mod pod;
mod request;
mod restarts;
mod timeline;

use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod};

pub(crate) use self::{pod::PodStory, request::RequestExplained};

/// What was read about a pod. Each section of its story is a function of this; a new section takes it too.
pub(crate) struct Seen {
    pub(crate) pod: Pod,
    /// The requests for this pod that are still there.
    pub(crate) requests: Vec<ContainerRecreateRequest>,
    /// The events about the pod, and about these requests.
    pub(crate) events: Vec<Event>,
    pub(crate) barriers: Barriers,
}

/// The ConfigMap of a pod with launch barriers.
pub(crate) enum Barriers {
    /// It was not to be read, or not looked for.
    Unknown,
    Absent,
    Present(Box<ConfigMap>),
}

#[cfg(test)]
mod tests;

//! What a ContainerRecreateRequest may say, and what is written into it; which pods get our readiness gate, and which
//! launch barriers.
//!
//! Owns every check and every injection of the webhooks: [`review`], [`gate_pod`] and [`review_launch`] answer one
//! question each and remember nothing. It reads neither cluster nor clock; [`needed_pod`] says what has to be read first.

#![warn(clippy::wildcard_enum_match_arm)]

mod create;
mod gate;
mod inject;
mod launch;
mod read;
mod status_annotations;
mod update;
mod verdict;
mod warnings;

use k8s_openapi::api::core::v1::Pod;
use model::{ids::CrrName, presence::LastSeen};
use serde_json::Value;

pub use gate::{GateScope, gate_pod};
pub use launch::{LaunchFacts, review_launch};
pub use verdict::{Code, Fault, Verdict};

/// One review as the API server asks for it. The objects are as the user sent them: anything.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    Create { object: &'a Value },
    Update { object: &'a Value, old: &'a Value },
}

/// What is known around a creation.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The pod of that name, if there is one.
    pub pod: Option<Pod>,
    /// Whether the pod's node exists; `None` where the pod has none.
    pub node_exists: Option<bool>,
    /// Whether the node's label says that it is a virtual kubelet's.
    pub is_node_virtual: bool,
    /// What the scheduler knows of the node; `None` while it cannot be asked.
    pub node_last_seen: Option<LastSeen>,
    /// Other CRRs of the pod that have not ended.
    pub other_active: Vec<CrrName>,
    /// W3C `traceparent` of the creation.
    pub trace_parent: Option<String>,
    /// The user whose request it is, as the API server authenticated them.
    pub requested_by: Option<String>,
}

/// The pod that has to be read before the review, if the request names one.
///
/// What it returns is safe as a path segment: a name that no pod can bear is not asked for.
pub fn needed_pod<'a>(request: &Request<'a>) -> Option<&'a str> {
    match request {
        Request::Create { object } => object
            .pointer("/spec/podName")?
            .as_str()
            .filter(|name| read::is_object_name(name)),
        Request::Update { .. } => None,
    }
}

/// Reviews one request: every fault at once, or the patch that completes it.
pub fn review(request: &Request<'_>, facts: &Facts) -> Verdict {
    match request {
        Request::Create { object } => create::review_create(object, facts),
        Request::Update { object, old } => update::review_update(object, old),
    }
}

//! Reviews of ContainerRecreateRequests (CRRs) and of new pods.
//!
//! Owns every check and every change that the webhooks make: [`review_create`] and [`review_update`] for CRRs,
//! [`gate_pod`] and [`review_launch`] for pods. It reads neither cluster nor clock; [`needed_pod`] names the pod that
//! the caller has to read first. The API server has decoded the metadata of the objects; the spec of a CRR may be any
//! JSON.

#![warn(clippy::wildcard_enum_match_arm)]

mod create;
mod gate;
mod inject;
mod launch;
mod status_annotations;
mod update;
mod verdict;
mod warnings;

use k8s_openapi::{api::core::v1::Pod, serde::Serialize};
use model::{ids::CrrName, presence::LastSeen};
use serde_json::{Value, json};

pub use create::{needed_pod, review_create};
pub use gate::{GateScope, gate_pod};
pub use launch::{LaunchFacts, review_launch};
pub use update::review_update;
pub use verdict::{Code, Fault, Verdict};

/// The longest name of an object (Kubernetes: a DNS-1123 subdomain).
const LONGEST_NAME: usize = 253;

/// State of the cluster when a CRR is created.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The pod that the CRR names, if it exists.
    pub pod: Option<Pod>,
    /// True if the pod's node exists; `None` if the pod has no node.
    pub node_exists: Option<bool>,
    /// True if the node's label marks it as a virtual kubelet's.
    pub is_node_virtual: bool,
    /// The scheduler's view of the node; `None` if it did not answer.
    pub node_last_seen: Option<LastSeen>,
    /// Other CRRs of the pod that have not ended.
    pub other_active: Vec<CrrName>,
}

/// The requester of a CRR and the trace of its creation.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The user, as the API server authenticated them.
    pub requester: Option<String>,
    /// W3C `traceparent`.
    pub traceparent: Option<String>,
}

/// The JSON patch that turns `before` into `after`.
fn patch(before: &impl Serialize, after: &impl Serialize) -> json_patch::Patch {
    json_patch::diff(&json!(before), &json!(after))
}

/// The list in `slot`, which becomes one if it is not.
fn list_in(slot: &mut Value) -> &mut Vec<Value> {
    if !slot.is_array() {
        *slot = json!([]);
    }
    slot.as_array_mut().expect("the slot holds a list")
}

//! The writes that a plan may ask for.
//!
//! Owns their types. When each is due is decided in `plan.rs` and `unready.rs`.

use model::crr::CrrStatus;

/// A write to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    Status(CrrStatus),
    /// Put our finalizer on the CRR, before its pod is held NotReady.
    AddFinalizer,
    /// Open or shut the pod's readiness gate.
    Gate(GateWrite),
    /// Take the `active` label and our finalizer off the CRR.
    Close,
    /// Delete the CRR: its time to live is over.
    Delete,
}

/// A pod's readiness gate as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateWrite {
    /// The pod's version that this was decided on: another writer's entry must not be lost.
    pub pod_version: String,
    pub is_open: bool,
    pub message: String,
    /// Write Ready as false too, instead of waiting for the kubelet's next look.
    pub is_ready_too: bool,
}

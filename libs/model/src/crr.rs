//! Domain form of a ContainerRecreateRequest (CRR): its spec and status without Kubernetes types.
//!
//! Owns the meaning of the fields (`docs/crr.md`). Spelling, defaults and schema are in `k8s-api`.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    condition::{Condition, ConditionType},
    ids::{ContainerName, CrrKey, CrrUid, NodeName, PodKey, PodUid, RuntimeContainerId},
    labels,
    order::PreStop,
    phase::{ContainerPhase, CrrPhase},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crr {
    pub key: CrrKey,
    pub uid: CrrUid,
    /// The object's resourceVersion: guards writes, and tells an older object from a newer one.
    pub version: String,
    pub created_at: Timestamp,
    pub is_being_deleted: bool,
    /// Whether the `active` label is on it.
    pub is_labelled_active: bool,
    /// All its finalizers, ours and others'.
    pub finalizers: Vec<String>,
    /// The user who created it, as admission wrote it.
    pub requested_by: Option<String>,
    /// Whether a crash-loop back-off is left alone.
    pub respects_back_off: bool,
    pub pod: PodKey,
    /// From the label that admission wrote; `None` on a CRR that never met our admission.
    pub pod_uid: Option<PodUid>,
    /// From the label that admission wrote.
    pub node: Option<NodeName>,
    pub containers: Vec<CrrContainer>,
    pub strategy: Strategy,
    /// Counted from `created_at`.
    pub active_deadline: Option<Duration>,
    /// Counted from the completion time.
    pub ttl_after_finished: Option<Duration>,
    pub status: CrrStatus,
    /// W3C `traceparent` of the creation.
    pub traceparent: Option<String>,
}

impl Crr {
    /// Whether our finalizer is on it: its pod's readiness may be held.
    pub fn has_finalizer(&self) -> bool {
        let mut finalizers = self.finalizers.iter();
        finalizers.any(|finalizer| finalizer == labels::UNREADY_ACQUIRED)
    }
}

/// One container of the restart list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrrContainer {
    pub name: ContainerName,
    pub pre_stop: Option<PreStop>,
    /// Why its preStop hook cannot be run, where it cannot: as with the kubelet, the stop goes on without it.
    pub hook_fault: Option<String>,
    /// The instance that was there at admission.
    pub fence: Option<Fence>,
}

/// `statusContext`: which instance is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    pub container_id: RuntimeContainerId,
    pub restart_count: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Strategy {
    pub failure_policy: FailurePolicy,
    /// Begin the next container only when the one before it has succeeded.
    pub is_ordered: bool,
    /// Stop once even an instance that is newer than the fence.
    pub is_forced: bool,
    pub termination_grace: Option<Duration>,
    /// How long the pod is kept NotReady before the first stop.
    pub unready_grace: Option<Duration>,
    /// How long the new instance has to be up before it counts.
    pub min_started: Duration,
}

/// What one container's failure does to the rest of the CRR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FailurePolicy {
    /// End the CRR.
    #[default]
    Fail,
    /// Go on with the next container.
    Ignore,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CrrStatus {
    /// `None` until the scheduler has seen the CRR.
    pub phase: Option<CrrPhase>,
    pub completed_at: Option<Timestamp>,
    pub message: String,
    pub containers: Vec<ContainerRecreateState>,
    /// What pod status said of the new instances.
    pub snapshot: Vec<ContainerSnapshot>,
    pub conditions: Vec<Condition>,
}

impl CrrStatus {
    pub fn condition(&self, kind: ConditionType) -> Option<&Condition> {
        let mut conditions = self.conditions.iter();
        conditions.find(|condition| condition.kind == kind)
    }
}

/// One entry of `status.containerRecreateStates`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerRecreateState {
    pub name: ContainerName,
    pub phase: ContainerPhase,
    pub message: String,
    /// Whether it was this CRR that stopped the instance.
    pub is_killed: bool,
}

/// One entry of `status.containerStatusSnapshot`: a new instance as pod status shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerSnapshot {
    pub name: ContainerName,
    pub is_ready: bool,
    pub restart_count: u32,
    pub container_id: RuntimeContainerId,
}

//! Everything that a plan is made from.
//!
//! Owns the shape of the observed state, and the questions that several rules ask of it.

use std::{collections::BTreeMap, time::Duration};

use model::{
    crr::{ContainerRecreateState, Crr, CrrContainer},
    ids::{ContainerId, ContainerName, CrrName, PodUid, RuntimeContainerId},
    order::Instance,
    phase::ContainerPhase,
    pod::{ContainerStatus, Pod},
    time::Monotonic,
};
use order_rules::{KnownOrder, Progress};

/// One CRR and what is known around it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub crr: Crr,
    pub pod: PodView,
    /// The stops that this leader has ordered for the CRR.
    pub orders: BTreeMap<ContainerName, KnownOrder>,
    /// Since when pod status has shown the present instance running.
    pub seen_running: BTreeMap<ContainerName, Seen>,
    /// Since when pod status has shown the present instance down.
    pub seen_down: BTreeMap<ContainerName, Seen>,
    /// When each container's dead instances were last removed.
    pub removed_at: BTreeMap<ContainerName, Monotonic>,
    /// When the pod was last nudged for this CRR.
    pub nudged_at: Option<Monotonic>,
    pub turn: Turn,
    /// When this leader last wrote the CRR's status.
    pub status_written_at: Option<Monotonic>,
    /// Pause between two progress writes.
    pub progress_every: Duration,
}

/// What is known of the CRR's pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodView {
    /// Its watch has not delivered yet.
    Unknown,
    /// No pod of that name exists.
    Gone,
    Present(Box<Pod>),
}

/// An instance, and since when it has been seen as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub container_id: RuntimeContainerId,
    pub since: Monotonic,
}

/// The CRR's place in its pod's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It may act: it is at work, or the oldest.
    Mine,
    /// That one has its turn.
    Behind(CrrName),
}

// === impl Snapshot ===

impl Snapshot {
    pub(crate) fn present_pod(&self) -> Option<&Pod> {
        match &self.pod {
            PodView::Present(pod) => {
                Some(&**pod).filter(|pod| Some(&pod.uid) == self.crr.pod_uid.as_ref())
            }
            PodView::Unknown | PodView::Gone => None,
        }
    }

    pub(crate) fn container_status(&self, name: &ContainerName) -> Option<&ContainerStatus> {
        self.present_pod().and_then(|pod| pod.container(name))
    }

    /// The progress of the container's stop; `None` if it was not ordered.
    pub(crate) fn progress(&self, name: &ContainerName) -> Option<&Progress> {
        self.orders.get(name).map(|order| &order.progress)
    }

    /// The uid by which the node knows the pod: that of a static pod is not the uid of its mirror in the API.
    pub(crate) fn node_pod_uid(&self) -> Option<PodUid> {
        let static_uid = self.present_pod().and_then(|pod| pod.static_uid.clone());
        static_uid.or_else(|| self.crr.pod_uid.clone())
    }

    /// The instance whose successor is waited for: the one that our order named, otherwise the fence's.
    pub(crate) fn stopped_instance<'a>(
        &'a self,
        container: &'a CrrContainer,
    ) -> Option<&'a ContainerId> {
        let ordered = self.orders.get(&container.name).map(|order| &order.target);
        ordered.or_else(|| container.fence.as_ref().map(|fence| &fence.container_id.id))
    }

    /// True if pod status shows another instance than the fence.
    pub(crate) fn is_newer_than_fence(&self, container: &CrrContainer) -> bool {
        let status = self.container_status(&container.name);
        let current = status.and_then(|status| status.container_id.as_ref());
        match (&container.fence, current) {
            (Some(fence), Some(current)) => {
                fence.container_id != *current
                    && self.stopped_instance(container) != Some(&current.id)
            }
            (Some(_) | None, None) | (None, Some(_)) => false,
        }
    }

    /// The state that was last written, or the first one.
    pub(crate) fn written_state(&self, name: &ContainerName) -> ContainerRecreateState {
        let mut written = self.crr.status.containers.iter();
        let written = written.find(|state| state.name == *name).cloned();
        written.unwrap_or_else(|| ContainerRecreateState {
            name: name.clone(),
            phase: ContainerPhase::Pending,
            message: String::new(),
            is_killed: false,
        })
    }

    /// The fence of an order for one of the CRR's containers.
    pub(crate) fn instance(
        &self,
        container: &ContainerName,
        container_id: ContainerId,
        restart_count: u32,
    ) -> Option<Instance> {
        Some(Instance {
            namespace: self.crr.pod.namespace.clone(),
            pod: self.crr.pod.name.clone(),
            pod_uid: self.node_pod_uid()?,
            container: container.clone(),
            container_id,
            restart_count,
        })
    }

    /// The object that asks for an order, for the node's log.
    pub(crate) fn reason(&self) -> String {
        format!("ContainerRecreateRequest {}", self.crr.key)
    }
}

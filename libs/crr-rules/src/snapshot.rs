//! Everything a plan is made from.
//!
//! Owns the observed state's shape. How it is observed is the scheduler's business.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use model::{
    crr::Crr,
    ids::{ContainerId, ContainerName, CrrName, RuntimeContainerId},
    pod::Pod,
};

use crate::OrderProgress;

/// One CRR and what is known around it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub crr: Crr,
    pub pod: PodView,
    /// What became of the orders of this CRR, as far as this leader knows.
    pub orders: BTreeMap<ContainerName, KnownOrder>,
    /// Since when pod status has shown the present instance running, by our own clock.
    pub seen_running: BTreeMap<ContainerName, Seen>,
    /// Since when pod status has shown the present instance down.
    pub seen_down: BTreeMap<ContainerName, Seen>,
    /// When each container's dead instances were last known to be gone.
    pub dropped_at: BTreeMap<ContainerName, Timestamp>,
    /// When the pod was last nudged for this CRR.
    pub nudged_at: Option<Timestamp>,
    pub turn: Turn,
    /// When this leader last wrote the CRR's status.
    pub status_written_at: Option<Timestamp>,
    /// So long after that, progress is written again.
    pub progress_every: Duration,
}

/// An order of the CRR, and which instance it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownOrder {
    pub target: ContainerId,
    pub progress: OrderProgress,
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
    pub since: Timestamp,
}

/// The CRR's place in its pod's queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is the oldest active one.
    Mine,
    /// That one is older and has not ended.
    Behind(CrrName),
}

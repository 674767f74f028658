//! Everything a plan is made from.
//!
//! Owns the observed state's shape. How it is observed is the barrier-manager's business.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use model::{
    ids::{ContainerId, ContainerName},
    launch::{BarrierMap, LaunchPod, Priority},
};

/// One pod and what is known around it.
#[derive(Clone, Debug)]
pub struct Snapshot<'a> {
    pub pod: &'a LaunchPod,
    pub map: &'a MapView,
    /// The instances that the node says it started, in this pod.
    pub started: &'a BTreeMap<ContainerName, ContainerId>,
    /// The level that was waited for at the last plan; `None` for a pod whose launch was not seen.
    pub current: Option<CurrentLevel>,
    /// Of a ConfigMap that our watch does not show; `None` where it was not fetched.
    pub looked: Option<Looked>,
    /// A level that is not up for so long earns a warning.
    pub stuck_after: Duration,
}

/// What is known of the pod's ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapView {
    /// Its watch has not delivered yet.
    Unknown,
    /// There is none.
    Absent,
    Present(BarrierMap),
}

/// When a pod's ConfigMap was fetched last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked {
    pub at: Timestamp,
    /// How often it was the same object as before, without a break.
    pub in_vain: u32,
}

/// A level that is waited for, and when it was first, by our own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentLevel {
    pub level: Priority,
    pub since: Timestamp,
}

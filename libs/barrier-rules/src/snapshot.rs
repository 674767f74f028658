//! Input of the planner: one pod, its ConfigMap, and what the machine remembers of both.

use std::{collections::BTreeMap, time::Duration};

use model::{
    ids::{ContainerId, ContainerName},
    launch::{BarrierMap, LaunchPod, Priority},
    time::Monotonic,
};

/// One pod and its surroundings.
#[derive(Clone, Debug)]
pub struct Snapshot<'a> {
    pub pod: &'a LaunchPod,
    pub map: MapView<'a>,
    /// The instances that the pod's node reported as started.
    pub started: &'a BTreeMap<ContainerName, ContainerId>,
    /// The level that was waited for at the last plan; `None` for a pod whose launch was not seen.
    pub current: Option<CurrentLevel>,
    /// The last fetch of a ConfigMap that the watch does not show; `None` if it was never fetched.
    pub poll: Option<MapPoll>,
    /// A level that is not up for this long causes a warning.
    pub stuck_after: Duration,
}

/// The pod's ConfigMap, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapView<'a> {
    /// The watch has not listed yet.
    Unknown,
    /// There is none.
    Absent,
    Present(&'a BarrierMap),
}

/// The last fetch of a ConfigMap that the watch does not show, because it lacks our label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapPoll {
    pub at: Monotonic,
    /// Successive fetches, up to this one, that found the same object as before.
    pub unchanged_polls: u32,
}

/// A level that is waited for, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentLevel {
    pub level: Priority,
    pub since: Monotonic,
}

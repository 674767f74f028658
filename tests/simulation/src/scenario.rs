//! The scenarios: which pods there are, and what users do to them.
//!
//! Owns the users' side of a history. Faults come on top of every scenario (`fault.rs`).

mod launches;
mod recreates;

use std::time::Duration;

use model::{
    crr::Crr,
    ids::{ContainerName, PodName},
    launch::Priority,
    pod::RestartPolicy,
};
use rand::rngs::StdRng;

/// A kind of history.
#[derive(Clone, Copy)]
pub struct Scenario {
    pub name: &'static str,
    pub(crate) build: fn(&mut StdRng) -> Setup,
    /// Users set times in it, which are measured on wall clocks: the normal run sets no clock (finding M6).
    pub(crate) is_timed: bool,
}

/// Every scenario of the normal run.
pub const SCENARIOS: &[Scenario] = &[
    scenario("simple", recreates::simple),
    scenario("queue", recreates::queue),
    scenario("ordered", recreates::ordered),
    scenario("forced", recreates::forced),
    timed(scenario("drain", recreates::drain)),
    timed(scenario("deadline", recreates::deadline)),
    timed(scenario("time to live", recreates::time_to_live)),
    scenario("deletion", recreates::deletion),
    scenario("back-off", recreates::back_off),
    timed(scenario("pod replaced", recreates::pod_replaced)),
    scenario("few slots", recreates::few_slots),
    scenario("deleted in queue", recreates::deleted_in_queue),
    scenario("ends for good", recreates::ends_for_good),
    scenario("launch", launches::launch),
    scenario("launch leftover", launches::leftover),
    scenario("launch and recreate", launches::with_recreate),
];

const fn scenario(name: &'static str, build: fn(&mut StdRng) -> Setup) -> Scenario {
    Scenario {
        name,
        build,
        is_timed: false,
    }
}

const fn timed(scenario: Scenario) -> Scenario {
    Scenario {
        is_timed: true,
        ..scenario
    }
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Scenario {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Scenario {}

/// What a history begins with, and what users do during it.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) nodes: usize,
    /// Of each node: how many stops run at once.
    pub(crate) slots: usize,
    pub(crate) pods: Vec<PodPlan>,
    pub(crate) deeds: Vec<(Duration, Deed)>,
}

/// A pod to be created.
#[derive(Clone, Debug)]
pub(crate) struct PodPlan {
    pub(crate) name: PodName,
    pub(crate) node: usize,
    pub(crate) restart_policy: RestartPolicy,
    pub(crate) has_gate: bool,
    pub(crate) containers: Vec<ContainerPlan>,
    /// A ConfigMap of an earlier pod of that name is there, with some keys.
    pub(crate) leftover: Option<Leftover>,
}

/// What keeps the ConfigMap of an earlier pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftover {
    Unnoticed,
    /// A foreign finalizer; it was deleted already.
    Finalizer,
}

#[derive(Clone, Debug)]
pub(crate) struct ContainerPlan {
    pub(crate) name: ContainerName,
    pub(crate) restart_policy: RestartPolicy,
    pub(crate) priority: Option<Priority>,
    pub(crate) needs_status: bool,
    /// Restart count of its first instance.
    pub(crate) restarts: u32,
    pub(crate) ready_after: Duration,
    /// The first instances end by themselves so long after their start, with these codes.
    pub(crate) ends: Vec<(Duration, i32)>,
}

/// Something that a user or another controller does.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// Admission completes the request from the pod as it is then.
    CreateRequest(Box<Crr>),
    DeleteRequest(&'static str),
    /// The owner of a foreign finalizer takes it off all requests.
    ReleaseRequests,
    DeletePod(&'static str),
    /// Deletes the pod and creates another one of its name, on that node.
    ReplacePod(&'static str, usize),
    EndContainer(&'static str, &'static str),
    /// A node is cut off from the bus for so long.
    CutOff(usize, Duration),
    /// Another agent holds the pod NotReady, or does so no longer.
    HoldGate(&'static str),
    ReleaseGate(&'static str),
}

// === impl Setup ===

impl Setup {
    fn new(pods: Vec<PodPlan>) -> Self {
        let nodes = pods.iter().map(|pod| pod.node + 1).max().unwrap_or(1);
        Self {
            nodes,
            slots: 4,
            pods,
            deeds: Vec::new(),
        }
    }

    fn at(mut self, milliseconds: u64, deed: Deed) -> Self {
        let at = Duration::from_millis(milliseconds);
        self.deeds.push((at, deed));
        self
    }

    fn request(self, milliseconds: u64, crr: Crr) -> Self {
        self.at(milliseconds, Deed::CreateRequest(Box::new(crr)))
    }
}

// === impl PodPlan ===

impl PodPlan {
    fn new(name: &str, node: usize, containers: Vec<ContainerPlan>) -> Self {
        Self {
            name: name.into(),
            node,
            restart_policy: RestartPolicy::Always,
            has_gate: false,
            containers,
            leftover: None,
        }
    }
}

// === impl ContainerPlan ===

impl ContainerPlan {
    fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            restart_policy: RestartPolicy::Always,
            priority: None,
            needs_status: true,
            restarts: 0,
            ready_after: Duration::from_millis(800),
            ends: Vec::new(),
        }
    }
}

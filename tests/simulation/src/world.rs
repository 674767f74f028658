//! The world: one queue of moments, one source of chance, and the rules that must hold whatever happens.
//!
//! Owns time, chance, faults and the judgement. What happens at a moment is in `happen.rs`.

mod happen;
mod moment;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    time::Duration,
};

use jiff::Timestamp;
use model::{
    crr::{Crr, CrrContainer, CrrStatus, Fence, Strategy},
    ids::{ContainerId, ContainerName, CrrKey},
    order::PreStop,
    phase::{ContainerPhase, CrrPhase},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::{executor::Executor, pod, pod::RealPod, scheduler::Memory};
use moment::Moment;

/// Faults happen until then; after that everything has to come to its end.
const FAULTS_UNTIL: Duration = Duration::from_secs(90);

/// By then the CRR must have ended.
const END: Duration = Duration::from_secs(600);

/// The containers that the CRR names.
const NAMES: [&str; 2] = ["app", "proxy"];

/// A bug planted on purpose: the simulation has to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    Nothing,
    /// The executor stops whatever instance is the newest.
    NoFence,
}

/// How a history ended, when all rules held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub status: CrrStatus,
    pub crashes: u32,
    pub took: Duration,
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The CRR has not ended though all faults did.
    NeverEnded { status: Box<CrrStatus> },
    /// An instance was stopped that the CRR does not name.
    ForeignInstanceStopped {
        container: ContainerName,
        id: ContainerId,
    },
    /// A hook whose end was journaled ran again, or ran after the stop.
    HookRanAfterItsEnd { container: ContainerName },
    /// The status says that we stopped it, and we did not.
    FalseKill { container: ContainerName },
    /// A container is Succeeded while pod status shows the instance that was to be replaced.
    SucceededTooEarly { container: ContainerName },
}

/// Everything there is.
pub(crate) struct World {
    rng: StdRng,
    pub(crate) now: Timestamp,
    start: Timestamp,
    queue: BinaryHeap<Reverse<(Timestamp, u64, Moment)>>,
    sequence: u64,
    plant: Plant,
    pub(crate) crr: Crr,
    pub(crate) pod: RealPod,
    /// `None` while the scheduler is down.
    pub(crate) scheduler: Option<Memory>,
    pub(crate) scheduler_life: u32,
    pub(crate) executor: Executor,
    /// Instances that ended because we stopped them.
    pub(crate) stopped_by_us: Vec<(ContainerName, ContainerId)>,
    /// Instances that ended by themselves.
    pub(crate) crashed_alone: Vec<ContainerId>,
    pub(crate) hooks_ended: BTreeMap<ContainerName, u32>,
    pub(crate) crashes: u32,
    pub(crate) violation: Option<Violation>,
}

/// Runs one history.
///
/// # Errors
/// The first rule that was broken.
pub fn run(seed: u64, plant: Plant) -> Result<Outcome, Box<Violation>> {
    let mut world = World::new(seed, plant);
    world.begin();
    while let Some(Reverse((at, _, moment))) = world.queue.pop() {
        if at > world.start + END {
            break;
        }
        world.now = at;
        world.happen(moment);
        if let Some(violation) = world.violation.take() {
            return Err(Box::new(violation));
        }
    }
    world.judge().map_err(Box::new)
}

// === impl World ===

impl World {
    fn new(seed: u64, plant: Plant) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let start = Timestamp::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let pod = RealPod::new(&NAMES);
        let containers = NAMES.iter().map(|name| CrrContainer {
            name: ContainerName::new(*name),
            pre_stop: rng.random_bool(0.5).then(|| PreStop::Exec {
                command: vec!["sync".to_owned()],
            }),
            hook_fault: None,
            fence: Some(Fence {
                container_id: format!("sim://{name}-0")
                    .parse()
                    .expect("it is well formed"),
                restart_count: 0,
            }),
        });
        let crr = Crr {
            key: CrrKey {
                namespace: "shop".into(),
                name: "restart".into(),
            },
            uid: "crr-uid".into(),
            created_at: start,
            is_being_deleted: false,
            is_labelled_active: true,
            finalizers: Vec::new(),
            requested_by: None,
            respects_back_off: true,
            pod: pod::key(),
            pod_uid: Some("pod-uid".into()),
            node: Some("node-1".into()),
            containers: containers.collect(),
            strategy: Strategy {
                is_ordered: rng.random_bool(0.5),
                termination_grace: Some(Duration::from_secs(5)),
                ..Strategy::default()
            },
            active_deadline: None,
            ttl_after_finished: None,
            status: CrrStatus::default(),
            trace_parent: None,
        };
        Self {
            rng,
            now: start,
            start,
            queue: BinaryHeap::new(),
            sequence: 0,
            plant,
            crr,
            pod,
            scheduler: None,
            scheduler_life: 0,
            executor: Executor::new(),
            stopped_by_us: Vec::new(),
            crashed_alone: Vec::new(),
            hooks_ended: BTreeMap::new(),
            crashes: 0,
            violation: None,
        }
    }

    fn begin(&mut self) {
        self.after(Duration::ZERO, Moment::SchedulerStarts);
        let delay = self.any(0, 3000);
        self.after(delay, Moment::ExecutorStarts);
        // In some histories a container ends by itself: the fence is for that.
        if self.rng.random_bool(0.5) {
            let name = ContainerName::new(NAMES[usize::from(self.rng.random_bool(0.5))]);
            let delay = self.any(0, 4000);
            self.after(delay, Moment::ContainerEndsAlone(name));
        }
    }

    /// Puts a moment into the future.
    pub(crate) fn after(&mut self, delay: Duration, moment: Moment) {
        self.sequence += 1;
        self.queue
            .push(Reverse((self.now + delay, self.sequence, moment)));
    }

    pub(crate) fn at(&mut self, time: Timestamp, moment: Moment) {
        self.sequence += 1;
        self.queue
            .push(Reverse((time.max(self.now), self.sequence, moment)));
    }

    /// Any time between so many milliseconds.
    pub(crate) fn any(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.rng.random_range(from..=to))
    }

    fn faults_happen(&self) -> bool {
        self.now < self.start + FAULTS_UNTIL
    }

    pub(crate) fn has(&self, plant: Plant) -> bool {
        self.plant == plant
    }

    /// Whether something of that probability goes wrong now.
    pub(crate) fn goes_wrong(&mut self, probability: f64) -> bool {
        self.faults_happen() && self.rng.random_bool(probability)
    }

    /// Sends over the bus: perhaps never, perhaps twice, perhaps late.
    pub(crate) fn send(&mut self, message: &Moment) {
        if self.goes_wrong(0.15) {
            return;
        }
        let copies = if self.goes_wrong(0.15) { 2 } else { 1 };
        for _ in 0..copies {
            let slowest = if self.goes_wrong(0.1) { 5000 } else { 20 };
            let delay = self.any(0, slowest);
            self.after(delay, message.clone());
        }
    }

    pub(crate) fn crash_scheduler(&mut self) {
        self.crashes += 1;
        self.scheduler = None;
        self.scheduler_life += 1;
        let delay = self.any(50, 12_000);
        self.after(delay, Moment::SchedulerStarts);
    }

    pub(crate) fn crash_executor(&mut self) {
        self.crashes += 1;
        self.executor.crash();
        let delay = self.any(50, 12_000);
        self.after(delay, Moment::ExecutorStarts);
    }

    pub(crate) fn break_rule(&mut self, violation: Violation) {
        self.violation.get_or_insert(violation);
    }

    fn judge(self) -> Result<Outcome, Violation> {
        let status = self.crr.status.clone();
        if status.phase != Some(CrrPhase::Completed) {
            return Err(Violation::NeverEnded {
                status: Box::new(status),
            });
        }
        for state in &status.containers {
            let container = state.name.clone();
            let was_stopped = self
                .stopped_by_us
                .iter()
                .any(|(name, _)| *name == container);
            let crashed_alone = self
                .crashed_alone
                .iter()
                .any(|id| id.as_str().starts_with(container.as_str()));
            if state.is_killed && !was_stopped && !crashed_alone {
                return Err(Violation::FalseKill { container });
            }
            let is_replaced = self.pod.containers[&container].restart_count > 0;
            if state.phase == ContainerPhase::Succeeded && !is_replaced {
                return Err(Violation::SucceededTooEarly { container });
            }
        }
        let ended = status.completed_at.unwrap_or(self.now);
        let took = ended
            .duration_since(self.start)
            .try_into()
            .unwrap_or(Duration::ZERO);
        Ok(Outcome {
            status,
            crashes: self.crashes,
            took,
        })
    }
}

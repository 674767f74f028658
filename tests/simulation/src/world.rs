//! The world of one history: time, randomness, the API server, the nodes' pods, the bus and the processes.
//!
//! Owns the state and the passing of time. The machines under test are in `shell/`; nothing here decides for them.

mod bus;
mod disturb;
mod kubelet;
mod process;
mod runtime;
mod users;
mod watches;
mod writes;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use model::ids::PodUid;
use rand::{RngExt, SeedableRng, rngs::StdRng};

pub(crate) use self::{
    kubelet::stays_ended,
    process::{Host, Shell},
    users::FOREIGN_FINALIZER,
    watches::{Selector, Shown},
};
use self::{runtime::Sandbox, watches::Watches};
use crate::{
    Failure, Mode, Options,
    api_server::ApiServer,
    brief,
    checks::{Ledger, Violation},
    coverage::Coverage,
    fault::Fault,
    plant::Plant,
    scenario::Setup,
    schedule::Schedule,
    shell::{executor::Executor, manager::Manager, scheduler::Scheduler},
};

/// Faults happen until then; afterwards everything has to come to its end.
pub(crate) const FAULTS_UNTIL: Duration = Duration::from_secs(120);

/// By then every request has ended and everything is forgotten.
const END: Duration = Duration::from_secs(2 * 3600);

/// How many lines a trace keeps.
const TRACE_LINES: usize = 60;

/// Everything of one history.
pub(crate) struct World {
    rng: StdRng,
    pub(crate) now: Duration,
    schedule: Schedule,
    pub(crate) options: Options,
    pub(crate) api: ApiServer,
    watches: Watches,
    pub(crate) sandboxes: BTreeMap<PodUid, Sandbox>,
    pub(crate) schedulers: Vec<Scheduler>,
    pub(crate) executors: Vec<Executor>,
    pub(crate) manager: Manager,
    /// No message of the schedulers passes.
    is_bus_away: bool,
    pub(crate) ledger: Ledger,
    pub(crate) coverage: Coverage,
    trace: Option<VecDeque<String>>,
    counter: u64,
}

/// `count` milliseconds.
pub(crate) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

// === impl World ===

impl World {
    /// Runs a history to its end.
    ///
    /// # Errors
    /// The first violation.
    pub(crate) fn run(options: Options, is_traced: bool) -> Result<Self, Box<Failure>> {
        let mut rng = StdRng::seed_from_u64(options.seed);
        let setup = (options.scenario.build)(&mut rng);
        let mut world = Self::new(options, rng, &setup);
        world.trace = is_traced.then(VecDeque::new);
        world.begin(setup);
        while let Some((at, action)) = world.schedule.next() {
            if at > END {
                break;
            }
            world.now = at;
            world.api.now = at;
            action(&mut world);
            world.pump_watches();
            if world.ledger.violation.is_some() {
                break;
            }
        }
        if world.ledger.violation.is_none() {
            world.check_end();
        }
        match world.ledger.violation.take() {
            None => Ok(world),
            Some(violation) => Err(Box::new(Failure {
                scenario: options.scenario.name,
                seed: options.seed,
                at: world.now,
                violation,
                trace: world.trace.unwrap_or_default().into(),
            })),
        }
    }

    fn new(options: Options, mut rng: StdRng, setup: &Setup) -> Self {
        let mut host = || rng.random_range(0..1_000_000);
        let schedulers = (0..2).map(|_| Scheduler::new(host())).collect();
        let executors = (0..setup.nodes).map(|_| Executor::new(host(), setup.slots));
        let executors = executors.collect();
        let manager = Manager::new(host());
        Self {
            rng,
            now: Duration::ZERO,
            schedule: Schedule::default(),
            options,
            api: ApiServer::default(),
            watches: Watches::default(),
            sandboxes: BTreeMap::new(),
            schedulers,
            executors,
            manager,
            is_bus_away: false,
            ledger: Ledger::default(),
            coverage: Coverage::default(),
            trace: None,
            counter: 0,
        }
    }

    fn begin(&mut self, setup: Setup) {
        self.coverage.count("scenario", self.options.scenario.name);
        self.place_users(setup);
        self.start::<Manager>(0);
        self.start::<Scheduler>(0);
        for node in 0..self.executors.len() {
            self.start::<Executor>(node);
        }
        self.plan_disturbances();
    }

    /// Lets something happen later.
    pub(crate) fn after(&mut self, wait: Duration, action: impl FnOnce(&mut Self) + 'static) {
        self.schedule.add(self.now + wait, Box::new(action));
    }

    /// A random duration, in milliseconds.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> Duration {
        ms(self.rng.random_range(least..=most))
    }

    pub(crate) fn is_likely(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    /// True if that fault happens now.
    pub(crate) fn fault(&mut self, fault: Fault) -> bool {
        let happens = self.has_faults() && self.is_likely(fault.probability());
        if happens {
            self.coverage.count("fault", fault.name());
        }
        happens
    }

    pub(crate) fn has_faults(&self) -> bool {
        self.options.mode == Mode::Faults && self.now < FAULTS_UNTIL
    }

    /// True if that bug is planted; counts as a trigger.
    pub(crate) fn is_planted(&self, plant: Plant) -> bool {
        self.options.plant == Some(plant)
    }

    /// A number that was not returned before.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    pub(crate) fn fail(&mut self, violation: Violation) {
        self.trace(|_| format!("VIOLATION {violation:?}"));
        self.ledger.violation.get_or_insert(violation);
    }

    /// Adds a line to the trace, if there is one.
    pub(crate) fn trace(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.trace.is_none() {
            return;
        }
        let line = brief::text(&line(self));
        let line = format!("{:>9.3} {line}", self.now.as_secs_f64());
        if let Some(trace) = &mut self.trace {
            if trace.len() == TRACE_LINES {
                trace.pop_front();
            }
            trace.push_back(line);
        }
    }

    /// The uids of all requests that have not ended.
    pub(crate) fn unended(&self) -> BTreeSet<String> {
        let crrs = self.api.crrs.values();
        let unended = crrs.filter(|crr| crr.status.completed_at.is_none());
        unended.map(|crr| crr.uid.to_string()).collect()
    }
}

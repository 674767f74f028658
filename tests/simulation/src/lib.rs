//! The machines of all services together on virtual time, with everything going wrong that may.
//!
//! Owns a small world: an API server, kubelets, container runtimes, a bus, and processes that crash before and after every
//! effect. One seed is one history. The real machines of `crr-rules`, `node-rules` and `barrier-rules` run in it: nothing
//! here decides for them.

mod api_server;
mod brief;
mod checks;
mod coverage;
mod fault;
mod known;
mod plant;
mod scenario;
mod schedule;
mod shell;
mod world;

use std::{fmt, time::Duration};

pub use checks::Violation;
pub use coverage::Coverage;
pub use fault::Fault;
pub use known::{KNOWN, Known};
pub use plant::Plant;
pub use scenario::{SCENARIOS, Scenario};
pub(crate) use world::World;

/// A kind of process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Process {
    Scheduler,
    Executor,
    Manager,
}

/// What goes wrong in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything, by chance.
    Faults,
    /// Nothing.
    Quiet,
    /// One crash, at the crash point of that number of that kind of process.
    CrashAt(Process, u64),
}

/// All that a history depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub scenario: Scenario,
    pub seed: u64,
    pub mode: Mode,
    pub plant: Option<Plant>,
    /// A fault that the normal run leaves out.
    pub trigger: Option<Fault>,
}

/// How a history ended in which every rule held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub coverage: Coverage,
    /// How many crash points each kind of process passed.
    pub crash_points: Vec<(Process, u64)>,
}

/// A history in which a rule was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub scenario: &'static str,
    pub seed: u64,
    pub at: Duration,
    pub violation: Violation,
    /// The last moments before it.
    pub trace: Vec<String>,
}

// === impl Options ===

impl Options {
    /// The normal run of a scenario.
    pub fn new(scenario: Scenario, seed: u64) -> Self {
        Self {
            scenario,
            seed,
            mode: Mode::Faults,
            plant: None,
            trigger: None,
        }
    }

    /// True if that fault, which the normal run leaves out, may happen.
    pub(crate) fn has(&self, trigger: Fault) -> bool {
        self.trigger == Some(trigger)
    }

    /// Runs the history.
    ///
    /// # Errors
    /// The first rule that was broken, with a trace.
    pub fn run(self) -> Result<Outcome, Box<Failure>> {
        match World::run(self, false) {
            Ok(world) => Ok(Outcome {
                coverage: world.coverage,
                crash_points: world.ledger.crash_points.into_iter().collect(),
            }),
            // The same history again, with a trace this time.
            Err(failure) => Err(World::run(self, true).err().unwrap_or(failure)),
        }
    }
}

// === impl Failure ===

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.trace {
            writeln!(f, "{line}")?;
        }
        write!(
            f,
            "scenario {:?}, seed {}: {:?} after {:.3} s",
            self.scenario,
            self.seed,
            self.violation,
            self.at.as_secs_f64()
        )
    }
}

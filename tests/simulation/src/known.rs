//! Defects that are not repaired: findings of the correctness review, and one that the simulation found (S3).
//!
//! Owns their table. A defect that is repaired leaves the table, and its trigger becomes part of the normal run.

use crate::{Failure, Fault};

/// A defect, and how it is seen.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub finding: &'static str,
    /// The scenario in which it is looked for.
    pub scenario: &'static str,
    pub violation: &'static str,
    /// The other scenarios in which the normal run meets it.
    also: &'static [&'static str],
    /// A fault that the normal run leaves out, or has seldom. `None`: the normal run meets the defect, which is no failure
    /// there.
    pub trigger: Option<Fault>,
}

/// All scenarios.
const EVERYWHERE: &str = "*";

const fn met(finding: &'static str, scenario: &'static str, violation: &'static str) -> Known {
    Known {
        finding,
        scenario,
        violation,
        also: &[],
        trigger: None,
    }
}

const fn also(also: &'static [&'static str], known: Known) -> Known {
    Known { also, ..known }
}

const fn triggered(trigger: Fault, known: Known) -> Known {
    Known {
        trigger: Some(trigger),
        ..known
    }
}

/// All of them.
pub const KNOWN: &[Known] = &[
    // A queued stop is begun after its request was deleted.
    also(&[EVERYWHERE], met("H4", "deleted in queue", "LateStop")),
    // An older pod counts as a newer one, or as none.
    triggered(Fault::StalePod, met("M1", "pod replaced", "FalsePodGone")),
    triggered(Fault::StalePod, met("M1", "time to live", "FalseSuccess")),
    triggered(Fault::StalePod, met("M1", "drain", "GateShut")),
    // An order's age is counted from its handling.
    triggered(Fault::FrozenLong, met("M2", "queue", "LateStop")),
    // The grace goes on while the executor is down.
    also(&[EVERYWHERE], met("M3", "time to live", "HookSkipped")),
    also(&[EVERYWHERE], met("M3", "deletion", "LateResume")),
    // A new leader takes `Recreating` back and orders again.
    also(&[EVERYWHERE], met("M4", "back-off", "SuccessorStopped")),
    // Wall clocks of two machines are compared.
    triggered(Fault::ClockStep, met("M6", "deadline", "TooEarly")),
    triggered(Fault::ClockStep, met("M6", "time to live", "TooEarly")),
    triggered(Fault::ClockStep, met("M6", "drain", "DrainCutShort")),
    // A node counts as silent by time, not by attempts.
    triggered(
        Fault::SlowWrites,
        also(&[EVERYWHERE], met("M15", "drain", "HastySilence")),
    ),
    // A leader that did not order the forced stop of a newer instance takes that for the successor.
    triggered(
        Fault::SlowWrites,
        also(&["back-off"], met("S3", "forced", "FalseSuccess")),
    ),
];

impl Known {
    /// True if the normal run may meet it.
    fn is_met(&self) -> bool {
        self.trigger.is_none_or(Fault::is_amplifier)
    }

    /// The defect that explains a failure of the normal run.
    pub fn explanation_of(failure: &Failure) -> Option<&'static Self> {
        KNOWN.iter().find(|known| {
            let is_there = known.scenario == failure.scenario
                || known.also.contains(&failure.scenario)
                || known.also == [EVERYWHERE];
            known.is_met() && is_there && failure.violation.name() == known.violation
        })
    }
}

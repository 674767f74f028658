//! One accepted order: from waiting for a slot to an acknowledged report.
//!
//! Owns its record and its phase. How it runs the hook and stops is in `act.rs`; which orders may act at
//! once is the machine's.

mod act;

use std::time::Duration;

use jiff::Timestamp;
use model::{
    order::{OrderAnswer, StopOrder, StopOutcome, StopReport},
    pause::Pause,
    time::{after, elapsed},
};

use super::Settings;
use crate::{Effect, InstanceState, Observed, Record, Stage};

/// First and longest wait before the runtime is asked again, or a report is sent again.
const MIN_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(60);

/// A runtime that restarts is back within seconds, and a container waits for it.
const MAX_RUNTIME_DELAY: Duration = Duration::from_secs(8);

/// An accepted order.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) record: Record,
    phase: Phase,
}

/// What is under way for an order: the part that a crash forgets.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Has no slot yet.
    Waiting,
    /// Has a slot; asked whether the instance is still alive. `tries` were not answered.
    Inspecting { tries: u32 },
    /// Has a slot; the runtime does not answer, asked again after the pause.
    RuntimeAway { pause: Pause, tries: u32 },
    /// The hook runs.
    Hooking,
    /// The runtime was told to stop the instance.
    Stopping,
    /// The stop failed; asked whether the instance is alive all the same.
    Verifying { failure: String },
    /// Finished; the report is on its way. `tries` were not acknowledged.
    Reporting { tries: u32 },
    /// Finished; the report is sent again after the pause.
    Unreported { pause: Pause, tries: u32 },
    /// Finished, and a leader knows; remembered for the retention.
    Acknowledged,
}

// === impl Held ===

impl Held {
    pub(super) fn accepted(order: StopOrder, trace_parent: Option<String>, now: Timestamp) -> Self {
        let record = Record {
            order,
            trace_parent,
            accepted_at: now,
            stage: Stage::Queued,
        };
        Self {
            record,
            phase: Phase::Waiting,
        }
    }

    /// Takes a journaled order up again, with the report it may owe.
    pub(super) fn recovered(record: Record) -> (Self, Option<Effect>) {
        let phase = match &record.stage {
            Stage::Queued | Stage::Begun { .. } | Stage::HookDone { .. } => Phase::Waiting,
            Stage::Finished {
                is_acknowledged: true,
                ..
            } => Phase::Acknowledged,
            Stage::Finished {
                is_acknowledged: false,
                ..
            } => Phase::Reporting { tries: 0 },
        };
        let held = Self { record, phase };
        let report = match held.phase {
            Phase::Reporting { .. } => held.report(),
            Phase::Waiting
            | Phase::Inspecting { .. }
            | Phase::RuntimeAway { .. }
            | Phase::Hooking
            | Phase::Stopping
            | Phase::Verifying { .. }
            | Phase::Unreported { .. }
            | Phase::Acknowledged => None,
        };
        (held, report)
    }

    /// The same order came again: never a second stop.
    pub(super) fn on_ordered_again(&mut self, attempt: u32) -> OrderAnswer {
        self.record.order.attempt = self.record.order.attempt.max(attempt);
        match &self.record.stage {
            Stage::Queued | Stage::Begun { .. } | Stage::HookDone { .. } => OrderAnswer::Accepted,
            Stage::Finished { outcome, .. } => OrderAnswer::Done {
                container_id: self.record.order.instance.container_id.clone(),
                outcome: outcome.clone(),
            },
        }
    }

    /// Time has passed since the instance was seen, so it is looked at again before anything is done.
    pub(super) fn take_slot(&mut self) -> Vec<Effect> {
        // Waiting => Inspecting
        self.phase = Phase::Inspecting { tries: 0 };
        vec![self.inspect()]
    }

    pub(super) fn on_inspected(
        &mut self,
        observed: Observed,
        settings: &Settings,
        now: Timestamp,
    ) -> Vec<Effect> {
        let (tries, failure) = match &self.phase {
            Phase::Inspecting { tries } => (*tries, None),
            Phase::Verifying { failure } => (0, Some(failure.clone())),
            Phase::Waiting
            | Phase::RuntimeAway { .. }
            | Phase::Hooking
            | Phase::Stopping
            | Phase::Reporting { .. }
            | Phase::Unreported { .. }
            | Phase::Acknowledged => return Vec::new(),
        };
        let is_alive = match observed {
            Observed::Unavailable { .. } => {
                // Inspecting | Verifying => RuntimeAway
                self.phase = Phase::RuntimeAway {
                    pause: Pause::new(now, delay(tries, MAX_RUNTIME_DELAY)),
                    tries: tries + 1,
                };
                return Vec::new();
            }
            Observed::NoPod | Observed::NoContainer => false,
            Observed::Newest {
                container_id,
                state,
                ..
            } => {
                container_id == self.record.order.instance.container_id
                    && state == InstanceState::Alive
            }
        };
        match (is_alive, failure) {
            // Inspecting | Verifying => Reporting
            (false, _) => {
                let outcome = self.outcome_of_absence();
                self.finish(outcome, now)
            }
            // Verifying => Reporting
            (true, Some(message)) => self.finish(StopOutcome::Failed { message }, now),
            // Inspecting => Reporting
            (true, None) if self.is_too_late(now) => {
                let message = "its deadline passed while it waited for its turn on the node";
                let message = message.to_owned();
                self.finish(StopOutcome::Failed { message }, now)
            }
            // Inspecting => Hooking | Stopping
            (true, None) => self.resume(settings, now),
        }
    }

    pub(super) fn on_report_acknowledged(&mut self, acknowledged: u32) -> Vec<Effect> {
        let Stage::Finished {
            sequence,
            is_acknowledged,
            ..
        } = &mut self.record.stage
        else {
            return Vec::new();
        };
        if *sequence != acknowledged || *is_acknowledged {
            return Vec::new();
        }
        *is_acknowledged = true;
        // Reporting | Unreported => Acknowledged
        self.phase = Phase::Acknowledged;
        vec![Effect::Store(self.record.clone())]
    }

    pub(super) fn on_report_failed(&mut self, failed: u32, now: Timestamp) -> Vec<Effect> {
        let (Phase::Reporting { tries }, Stage::Finished { sequence, .. }) =
            (&self.phase, &self.record.stage)
        else {
            return Vec::new();
        };
        if *sequence == failed {
            // Reporting => Unreported
            self.phase = Phase::Unreported {
                pause: Pause::new(now, delay(*tries, MAX_DELAY)),
                tries: tries + 1,
            };
        }
        Vec::new()
    }

    /// Does what was put off until the deadline.
    pub(super) fn on_deadline(&mut self) -> Vec<Effect> {
        match self.phase {
            // RuntimeAway => Inspecting
            Phase::RuntimeAway { tries, .. } => {
                self.phase = Phase::Inspecting { tries };
                vec![self.inspect()]
            }
            // Unreported => Reporting
            Phase::Unreported { tries, .. } => {
                self.phase = Phase::Reporting { tries };
                self.report().into_iter().collect()
            }
            Phase::Waiting
            | Phase::Inspecting { .. }
            | Phase::Hooking
            | Phase::Stopping
            | Phase::Verifying { .. }
            | Phase::Reporting { .. }
            | Phase::Acknowledged => Vec::new(),
        }
    }

    pub(super) fn next_deadline(&self, settings: &Settings) -> Option<Timestamp> {
        match (&self.phase, &self.record.stage) {
            (Phase::RuntimeAway { pause, .. } | Phase::Unreported { pause, .. }, _) => {
                Some(pause.ends_at())
            }
            (Phase::Acknowledged, Stage::Finished { finished_at, .. }) => {
                Some(after(*finished_at, settings.retention))
            }
            (
                Phase::Waiting
                | Phase::Inspecting { .. }
                | Phase::Hooking
                | Phase::Stopping
                | Phase::Verifying { .. }
                | Phase::Reporting { .. }
                | Phase::Acknowledged,
                _,
            ) => None,
        }
    }

    /// Whether something was put off, and for no longer. What is remembered is so until the end of the retention by the
    /// clock, whoever sets that: an order forgotten too early might be done twice.
    pub(super) fn is_due(&self, settings: &Settings, now: Timestamp) -> bool {
        match self.phase {
            Phase::RuntimeAway { pause, .. } | Phase::Unreported { pause, .. } => {
                pause.is_over(now)
            }
            Phase::Waiting
            | Phase::Inspecting { .. }
            | Phase::Hooking
            | Phase::Stopping
            | Phase::Verifying { .. }
            | Phase::Reporting { .. }
            | Phase::Acknowledged => self
                .next_deadline(settings)
                .is_some_and(|deadline| deadline <= now),
        }
    }

    pub(super) fn has_slot(&self) -> bool {
        match self.phase {
            Phase::Inspecting { .. }
            | Phase::RuntimeAway { .. }
            | Phase::Hooking
            | Phase::Stopping
            | Phase::Verifying { .. } => true,
            Phase::Waiting
            | Phase::Reporting { .. }
            | Phase::Unreported { .. }
            | Phase::Acknowledged => false,
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.record.stage, Stage::Finished { .. })
    }

    pub(super) fn is_acknowledged(&self) -> bool {
        self.phase == Phase::Acknowledged
    }

    /// Whether it waited until nobody wants it any more.
    fn is_too_late(&self, now: Timestamp) -> bool {
        let waited = elapsed(self.record.accepted_at, now);
        let limit = self.record.order.begin_within;
        let has_passed = limit.is_some_and(|limit| waited > limit);
        self.record.stage == Stage::Queued && has_passed
    }

    /// What it means that the instance is not alive any more.
    fn outcome_of_absence(&self) -> StopOutcome {
        if self.record.may_have_stopped() {
            StopOutcome::Stopped {
                hook_error: self.record.hook_error(),
            }
        } else {
            StopOutcome::Gone
        }
    }

    fn finish(&mut self, outcome: StopOutcome, now: Timestamp) -> Vec<Effect> {
        // Queued | Begun | HookDone => Finished
        self.record.stage = Stage::Finished {
            outcome,
            finished_at: now,
            sequence: 1,
            is_acknowledged: false,
        };
        self.phase = Phase::Reporting { tries: 0 };
        let mut effects = vec![Effect::Store(self.record.clone())];
        effects.extend(self.report());
        effects
    }

    fn inspect(&self) -> Effect {
        Effect::Inspect {
            order: self.record.order.id.clone(),
            instance: self.record.order.instance.clone(),
        }
    }

    fn report(&self) -> Option<Effect> {
        let Stage::Finished {
            outcome, sequence, ..
        } = &self.record.stage
        else {
            return None;
        };
        Some(Effect::Report(StopReport {
            order: self.record.order.id.clone(),
            attempt: self.record.order.attempt,
            sequence: *sequence,
            instance: self.record.order.instance.clone(),
            outcome: outcome.clone(),
        }))
    }
}

/// `MIN_DELAY`, doubled with each try up to `max`. Jitter is the driver's.
fn delay(tries: u32, max: Duration) -> Duration {
    MIN_DELAY
        .saturating_mul(1_u32.checked_shl(tries).unwrap_or(u32::MAX))
        .min(max)
}

//! One accepted stop: from waiting for a slot to an acknowledged report.
//!
//! Owns its transitions, the pauses between reports, and the sharing of the grace (kubelet, `killContainer`): the hook may
//! use all of it, the stop gets the rest, at least the minimum. The machine decides which stops may act at once, and stores
//! each new stage.

mod state;

use std::time::Duration;

use jiff::Timestamp;
use model::{
    instances::{InstanceState, Observed},
    order::{Answer, Instance, Outcome},
    order_id::OrderId,
    retry::Doubling,
    time::{Monotonic, Now},
};

use self::state::{Finished, GraceEnd, Progress, ReportState, SentStop, State};
use crate::{
    effect::{Action, Effects},
    event::{HookResult, StopResult},
    record::{Record, Stage, StopOrder},
};

/// Minimum time that the runtime waits before it kills, however long the hook took (as in the kubelet).
const MIN_GRACE: Duration = Duration::from_secs(2);

/// Pauses before a report is sent again.
const REPORT_PAUSES: Doubling = Doubling::new(Duration::from_secs(1), Duration::from_secs(60));

/// Pauses before the runtime is asked again. A runtime that restarts is back within seconds.
const RUNTIME_PAUSES: Doubling = Doubling::new(Duration::from_secs(1), Duration::from_secs(8));

/// A journaled stop.
#[derive(Clone, Debug)]
pub(crate) struct AcceptedStop {
    order: StopOrder,
    traceparent: Option<String>,
    accepted_at: Timestamp,
    state: State,
}

// === impl AcceptedStop ===

impl AcceptedStop {
    /// A stop whose fence held just now. It is not stored yet.
    pub(crate) fn accepted(order: StopOrder, traceparent: Option<String>, now: Now) -> Self {
        let progress = Progress::untouched(&order, now.wall, now);
        Self {
            order,
            traceparent,
            accepted_at: now.wall,
            state: State::Queued(progress),
        }
    }

    /// Takes up a journaled stop. A report that was not acknowledged is sent.
    pub(crate) fn recovered(record: Record, now: Now, effects: &mut Effects) -> Self {
        let state = State::recovered(&record, now);
        if let State::Finished(finished) = &state
            && finished.report != ReportState::Acknowledged
        {
            effects.report(finished.report(&record.order));
        }
        Self {
            order: record.order,
            traceparent: record.traceparent,
            accepted_at: record.accepted_at,
            state,
        }
    }

    /// Answers a repetition of the order; it never causes a second stop.
    pub(crate) fn on_ordered_again(&mut self, attempt: u32) -> Answer {
        self.order.attempt = self.order.attempt.max(attempt);
        let State::Finished(finished) = &self.state else {
            return Answer::Accepted;
        };
        Answer::Done {
            container_id: Some(self.order.instance.container_id.clone()),
            outcome: finished.outcome.clone(),
        }
    }

    /// Begins the work on an instance that was alive just now.
    pub(crate) fn begin(&mut self, now: Now, effects: &mut Effects) {
        let grace = GraceEnd::starting(self.order.stop.grace, now);
        self.run_hook(grace, now, effects);
    }

    /// Gives a waiting stop its slot. Time has passed since its instance was seen, so the runtime is asked again.
    pub(crate) fn on_slot_granted(&mut self, effects: &mut Effects) {
        if let State::Queued(progress) = &self.state {
            // Queued => Inspecting
            self.inspect(progress.clone(), 0, effects);
        }
    }

    pub(crate) fn on_inspected(&mut self, observed: Observed, now: Now, effects: &mut Effects) {
        let is_alive = self.is_alive(observed);
        match self.state.clone() {
            State::Inspecting { progress, tries } => match is_alive {
                Some(true) => self.resume(progress, now, effects),
                // Inspecting => Finished
                Some(false) => self.finish(progress.outcome_of_absence(), now, effects),
                // Inspecting => RuntimeAway
                None => self.wait_for_runtime(progress, tries, now),
            },
            State::Verifying { sent, failure } => match is_alive {
                // Verifying => Finished
                Some(true) => self.finish(Outcome::Failed { message: failure }, now, effects),
                // Verifying => Finished
                Some(false) => self.finish(sent.stopped(), now, effects),
                // Verifying => RuntimeAway
                None => self.wait_for_runtime(Progress::StopBegun(sent), 0, now),
            },
            State::Queued(_)
            | State::RuntimeAway { .. }
            | State::Hooking(_)
            | State::Stopping(_)
            | State::Finished(_) => {}
        }
    }

    pub(crate) fn on_hook_ended(&mut self, result: HookResult, now: Now, effects: &mut Effects) {
        let State::Hooking(grace) = self.state else {
            return;
        };
        let error = match result {
            HookResult::Succeeded => None,
            HookResult::Failed { message } => Some(message),
            HookResult::CutOff => Some("the hook was cut off at the end of the grace".to_owned()),
        };
        // Hooking => Stopping
        self.send_stop(SentStop::after_hook(grace, error), now, effects);
    }

    pub(crate) fn on_stop_ended(&mut self, result: StopResult, now: Now, effects: &mut Effects) {
        let State::Stopping(sent) = self.state.clone() else {
            return;
        };
        match result {
            // Stopping => Finished
            StopResult::Stopped => self.finish(sent.stopped(), now, effects),
            // Stopping => Finished
            StopResult::NotFound => self.finish(Outcome::Gone, now, effects),
            // Stopping => Verifying: a stop that "failed" has often worked, so the runtime is asked.
            StopResult::Failed { message } => {
                let failure = message;
                self.state = State::Verifying { sent, failure };
                effects.actions.push(self.inspection());
            }
            // Stopping => RuntimeAway
            StopResult::Unavailable { .. } => {
                self.wait_for_runtime(Progress::StopBegun(sent), 0, now);
            }
        }
    }

    pub(crate) fn on_report_acknowledged(&mut self, sequence: u32) {
        if let State::Finished(finished) = &mut self.state
            && finished.sequence == sequence
        {
            // Sending | Waiting => Acknowledged
            finished.report = ReportState::Acknowledged;
        }
    }

    pub(crate) fn on_report_failed(&mut self, sequence: u32, now: Now) {
        if let State::Finished(finished) = &mut self.state
            && let ReportState::Sending { tries } = finished.report
            && finished.sequence == sequence
        {
            // Sending => Waiting
            finished.report = ReportState::Waiting {
                tries: tries.saturating_add(1),
                until: now.monotonic + REPORT_PAUSES.pause(tries),
            };
        }
    }

    /// Goes on after a pause.
    pub(crate) fn on_wakeup(&mut self, effects: &mut Effects) {
        if let State::RuntimeAway {
            progress, tries, ..
        } = &self.state
        {
            // RuntimeAway => Inspecting
            self.inspect(progress.clone(), *tries, effects);
        } else if let State::Finished(finished) = &mut self.state
            && let ReportState::Waiting { tries, .. } = finished.report
        {
            // Waiting => Sending
            finished.report = ReportState::Sending { tries };
            effects.report(finished.report(&self.order));
        }
    }

    pub(crate) fn id(&self) -> &OrderId {
        &self.order.id
    }

    pub(crate) fn instance(&self) -> &Instance {
        &self.order.instance
    }

    /// The journaled part.
    pub(crate) fn record(&self) -> Record {
        Record {
            order: self.order.clone(),
            traceparent: self.traceparent.clone(),
            accepted_at: self.accepted_at,
            stage: self.stage(),
        }
    }

    pub(crate) fn stage(&self) -> Stage {
        self.state.stage()
    }

    /// True if work on the instance is under way.
    pub(crate) fn has_slot(&self) -> bool {
        !matches!(self.state, State::Queued(_) | State::Finished(_))
    }

    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.state, State::Finished(_))
    }

    /// End of the pause that the stop is in.
    pub(crate) fn wakeup(&self) -> Option<Monotonic> {
        let (State::RuntimeAway { until, .. }
        | State::Finished(Finished {
            report: ReportState::Waiting { until, .. },
            ..
        })) = &self.state
        else {
            return None;
        };
        Some(*until)
    }

    /// When an acknowledged stop was finished.
    pub(crate) fn acknowledged_end(&self) -> Option<Timestamp> {
        let State::Finished(finished) = &self.state else {
            return None;
        };
        let is_acknowledged = finished.report == ReportState::Acknowledged;
        is_acknowledged.then_some(finished.finished_at)
    }

    /// True if the ordered instance is the newest and alive; `None` if the runtime did not answer.
    fn is_alive(&self, observed: Observed) -> Option<bool> {
        match observed {
            Observed::Unavailable { .. } => None,
            Observed::NoPod | Observed::NoContainer => Some(false),
            Observed::Newest(newest) => {
                let is_ordered = newest.container_id == self.order.instance.container_id;
                Some(is_ordered && newest.state == InstanceState::Alive)
            }
        }
    }

    /// Continues with an instance that is alive.
    fn resume(&mut self, progress: Progress, now: Now, effects: &mut Effects) {
        match progress {
            // Inspecting => Finished
            Progress::Untouched { begin_by: Some(by) } if now.monotonic >= by => {
                let message = "its deadline passed while it waited for its turn on the node";
                let message = message.to_owned();
                self.finish(Outcome::Failed { message }, now, effects);
            }
            Progress::Untouched { .. } => self.begin(now, effects),
            Progress::HookBegun(grace) => self.run_hook(grace, now, effects),
            // Inspecting => Stopping
            Progress::StopBegun(sent) => self.send_stop(sent, now, effects),
        }
    }

    fn inspect(&mut self, progress: Progress, tries: u32, effects: &mut Effects) {
        self.state = State::Inspecting { progress, tries };
        effects.actions.push(self.inspection());
    }

    fn inspection(&self) -> Action {
        Action::Inspect {
            order: self.order.id.clone(),
            instance: self.order.instance.clone(),
        }
    }

    /// Runs the hook within the grace that is left; without one, or without time for it, sends the stop.
    fn run_hook(&mut self, grace: GraceEnd, now: Now, effects: &mut Effects) {
        let limit = grace.left(now);
        match self.order.hook().cloned() {
            // Queued | Inspecting => Stopping
            None => self.send_stop(SentStop::without_hook(grace), now, effects),
            Some(_) if limit.is_zero() => {
                // Inspecting => Stopping
                let error = Some("the grace ended before the hook did".to_owned());
                self.send_stop(SentStop::after_hook(grace, error), now, effects);
            }
            Some(hook) => {
                // Queued | Inspecting => Hooking
                self.state = State::Hooking(grace);
                effects.actions.push(Action::RunHook {
                    order: self.order.id.clone(),
                    instance: self.order.instance.clone(),
                    hook,
                    limit,
                });
            }
        }
    }

    fn send_stop(&mut self, sent: SentStop, now: Now, effects: &mut Effects) {
        // A hook or a crash must not shorten the rest below the minimum.
        let timeout = sent.grace.left(now).max(MIN_GRACE);
        self.state = State::Stopping(sent);
        effects.actions.push(Action::Stop {
            order: self.order.id.clone(),
            container_id: self.order.instance.container_id.clone(),
            timeout,
        });
    }

    /// Pauses until the runtime is asked again. `tries`: earlier inspections without an answer.
    fn wait_for_runtime(&mut self, progress: Progress, tries: u32, now: Now) {
        self.state = State::RuntimeAway {
            progress,
            tries: tries.saturating_add(1),
            until: now.monotonic + RUNTIME_PAUSES.pause(tries),
        };
    }

    fn finish(&mut self, outcome: Outcome, now: Now, effects: &mut Effects) {
        let finished = Finished {
            outcome,
            finished_at: now.wall,
            sequence: 1,
            report: ReportState::Sending { tries: 0 },
        };
        effects.report(finished.report(&self.order));
        self.state = State::Finished(finished);
    }
}

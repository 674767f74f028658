//! The states of one accepted stop.
//!
//! Owns what each state knows, and its projection onto the journaled stage. The transitions are in `stop.rs`.

use std::time::Duration;

use jiff::Timestamp;
use model::{
    order::{Outcome, Report},
    time::{Monotonic, Now, after, elapsed},
};

use crate::record::{Record, Stage, StopOrder};

/// State of an accepted stop. All from `Inspecting` to `Verifying` hold a slot.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Waits for a slot.
    Queued(Progress),
    /// The runtime was asked if the instance is still alive. `tries`: earlier inspections without an answer.
    Inspecting { progress: Progress, tries: u32 },
    /// The runtime does not answer; it is asked again at `until`.
    RuntimeAway {
        progress: Progress,
        tries: u32,
        until: Monotonic,
    },
    /// The hook runs.
    Hooking(GraceEnd),
    /// The runtime was asked to stop the instance.
    Stopping(SentStop),
    /// The stop failed with `failure`; the runtime was asked if the instance is alive all the same.
    Verifying { sent: SentStop, failure: String },
    /// Nothing more is done to the instance; the end is reported.
    Finished(Finished),
}

/// How far the work on an instance had come when it was interrupted, by a crash or by the runtime's absence.
#[derive(Clone, Debug)]
pub(super) enum Progress {
    /// Nothing was done to the instance. `begin_by`: from then on it is too late to begin.
    Untouched { begin_by: Option<Monotonic> },
    /// The hook was begun, and its end is not known.
    HookBegun(GraceEnd),
    /// The stop may have been sent.
    StopBegun(SentStop),
}

/// A stop that was sent, or was about to be: an instance that is gone was then stopped by this order.
#[derive(Clone, Debug)]
pub(super) struct SentStop {
    pub(super) grace: GraceEnd,
    hook: HookEnd,
}

/// How the hook ended before the stop.
#[derive(Clone, Debug)]
enum HookEnd {
    /// There was no hook to run.
    NoHook,
    /// The hook has ended, with or without an error.
    Ended { error: Option<String> },
}

/// The end of a stop, and the report of it.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    pub(super) outcome: Outcome,
    pub(super) finished_at: Timestamp,
    pub(super) sequence: u32,
    pub(super) report: ReportState,
}

/// State of a finished stop's report. `tries`: earlier sendings that were not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportState {
    /// It was sent.
    Sending { tries: u32 },
    /// It is sent again at `until`.
    Waiting { tries: u32, until: Monotonic },
    /// A leader has acknowledged it; the stop is remembered for the retention.
    Acknowledged,
}

/// End of the grace on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct GraceEnd {
    /// Journaled: the grace goes on while the process is down.
    wall: Timestamp,
    monotonic: Monotonic,
}

// === impl State ===

impl State {
    /// The state in which a journaled stop is taken up after a restart.
    pub(super) fn recovered(record: &Record, now: Now) -> Self {
        let order = &record.order;
        let grace_end = |wall| GraceEnd::recovered(wall, order.stop.grace, now);
        match record.stage.clone() {
            Stage::Queued => Self::Queued(Progress::untouched(order, record.accepted_at, now)),
            Stage::Begun { grace_ends } => {
                let grace = grace_end(grace_ends);
                Self::Queued(match order.hook() {
                    Some(_) => Progress::HookBegun(grace),
                    None => Progress::StopBegun(SentStop::without_hook(grace)),
                })
            }
            Stage::HookDone {
                grace_ends,
                hook_error,
            } => {
                let sent = SentStop::after_hook(grace_end(grace_ends), hook_error);
                Self::Queued(Progress::StopBegun(sent))
            }
            Stage::Finished {
                outcome,
                finished_at,
                sequence,
                is_acknowledged,
            } => Self::Finished(Finished {
                outcome,
                finished_at,
                sequence,
                report: if is_acknowledged {
                    ReportState::Acknowledged
                } else {
                    ReportState::Sending { tries: 0 }
                },
            }),
        }
    }

    pub(super) fn stage(&self) -> Stage {
        match self {
            Self::Queued(progress)
            | Self::Inspecting { progress, .. }
            | Self::RuntimeAway { progress, .. } => match progress {
                Progress::Untouched { .. } => Stage::Queued,
                Progress::HookBegun(grace) => grace.begun(),
                Progress::StopBegun(sent) => sent.stage(),
            },
            Self::Hooking(grace) => grace.begun(),
            Self::Stopping(sent) | Self::Verifying { sent, .. } => sent.stage(),
            Self::Finished(finished) => finished.stage(),
        }
    }
}

// === impl Progress ===

impl Progress {
    /// `accepted_at` limits when the work may begin, also after a restart.
    pub(super) fn untouched(order: &StopOrder, accepted_at: Timestamp, now: Now) -> Self {
        let waited = elapsed(accepted_at, now.wall);
        let begin_within = order.stop.begin_within;
        Self::Untouched {
            begin_by: begin_within.map(|limit| now.monotonic + limit.saturating_sub(waited)),
        }
    }

    /// The outcome if the instance is found to be gone.
    pub(super) fn outcome_of_absence(&self) -> Outcome {
        match self {
            Self::Untouched { .. } | Self::HookBegun(_) => Outcome::Gone,
            Self::StopBegun(sent) => sent.stopped(),
        }
    }
}

// === impl SentStop ===

impl SentStop {
    pub(super) fn after_hook(grace: GraceEnd, error: Option<String>) -> Self {
        let hook = HookEnd::Ended { error };
        Self { grace, hook }
    }

    pub(super) fn without_hook(grace: GraceEnd) -> Self {
        let hook = HookEnd::NoHook;
        Self { grace, hook }
    }

    /// The outcome of a stop that worked.
    pub(super) fn stopped(&self) -> Outcome {
        let hook_error = match &self.hook {
            HookEnd::NoHook => None,
            HookEnd::Ended { error } => error.clone(),
        };
        Outcome::Stopped { hook_error }
    }

    fn stage(&self) -> Stage {
        match &self.hook {
            HookEnd::NoHook => self.grace.begun(),
            HookEnd::Ended { error } => Stage::HookDone {
                grace_ends: self.grace.wall,
                hook_error: error.clone(),
            },
        }
    }
}

// === impl Finished ===

impl Finished {
    pub(super) fn report(&self, order: &StopOrder) -> Report {
        Report {
            order: order.id.clone(),
            attempt: order.attempt,
            sequence: self.sequence,
            instance: order.instance.clone(),
            outcome: self.outcome.clone(),
        }
    }

    fn stage(&self) -> Stage {
        Stage::Finished {
            outcome: self.outcome.clone(),
            finished_at: self.finished_at,
            sequence: self.sequence,
            is_acknowledged: self.report == ReportState::Acknowledged,
        }
    }
}

// === impl GraceEnd ===

impl GraceEnd {
    /// A grace that begins now.
    pub(super) fn starting(grace: Duration, now: Now) -> Self {
        Self {
            wall: after(now.wall, grace),
            monotonic: now.monotonic + grace,
        }
    }

    /// A grace that began before a restart. A clock that was set back does not lengthen it.
    fn recovered(wall: Timestamp, grace: Duration, now: Now) -> Self {
        let left = elapsed(now.wall, wall).min(grace);
        Self {
            wall,
            monotonic: now.monotonic + left,
        }
    }

    pub(super) fn left(self, now: Now) -> Duration {
        self.monotonic - now.monotonic
    }

    fn begun(self) -> Stage {
        Stage::Begun {
            grace_ends: self.wall,
        }
    }
}

//! The state of one container of a CRR: the table of document 000 and of OpenKruise's daemon.
//!
//! Owns the judgement "killed, coming back, back, lost". It looks at one container only; order among
//! containers is in `plan.rs`.

use std::time::Duration;

use model::{
    crr::{ContainerRecreateState, CrrContainer},
    ids::RuntimeContainerId,
    order::{Outcome, Refusal},
    phase::ContainerPhase,
    pod::{ContainerState, ContainerStatus, RestartPolicy},
    time::{Monotonic, Now},
};
use order_rules::{Progress, Silence};

use crate::{limits::NODE_SILENCE_SHOWN, snapshot::Snapshot};

/// How long a silent node is asked whether it was us who stopped an instance that is gone already.
const ASK_WHO_STOPPED: Duration = Duration::from_secs(10);

/// A container's state, and when it may change by the passing of time alone.
pub(crate) struct Judgement {
    pub(crate) state: ContainerRecreateState,
    pub(crate) look_again_at: Option<Monotonic>,
}

/// Judges a container from its last written state, its order's progress and pod status.
pub(crate) fn judge(snapshot: &Snapshot, container: &CrrContainer, now: Now) -> Judgement {
    let judge = Judge {
        snapshot,
        container,
        now,
        before: snapshot.written_state(&container.name),
    };
    judge.judge()
}

/// One container's case.
struct Judge<'a> {
    snapshot: &'a Snapshot,
    container: &'a CrrContainer,
    now: Now,
    /// The state that was last written.
    before: ContainerRecreateState,
}

/// Whether the instance that is meant has been stopped.
enum Stop {
    /// By our order.
    Ours,
    /// By something else: a crash, an in-place update.
    NotOurs,
    /// Not yet, and why, where a reason is known.
    NotYet(String),
}

enum RefusalMeans {
    Restarted,
    NotYet(String),
    Never(String),
}

fn judge_refusal(refusal: &Refusal) -> RefusalMeans {
    match refusal {
        Refusal::OtherInstance { .. } | Refusal::AlreadyExited => RefusalMeans::Restarted,
        Refusal::NoSuchContainer => RefusalMeans::NotYet("not found container on Node".to_owned()),
        Refusal::NoSuchPod
        | Refusal::StillRunning
        | Refusal::StopUnfinished { .. }
        | Refusal::RuntimeUnavailable { .. } => RefusalMeans::NotYet(refusal.to_string()),
        Refusal::Invalid { .. } => RefusalMeans::Never(refusal.to_string()),
    }
}

// === impl Judge ===

impl Judge<'_> {
    fn judge(self) -> Judgement {
        if self.before.phase.is_final() {
            return Judgement {
                state: self.before,
                look_again_at: None,
            };
        }
        let stopped = match self.snapshot.progress(&self.container.name) {
            None | Some(Progress::Sent | Progress::Accepted) if self.before.is_killed => Stop::Ours,
            None | Some(Progress::Sent | Progress::Accepted) => Stop::NotYet(String::new()),
            Some(Progress::Done(Outcome::Stopped { .. })) => Stop::Ours,
            Some(Progress::Done(Outcome::Gone | Outcome::Removed { .. })) => Stop::NotOurs,
            Some(Progress::Done(Outcome::Failed { message })) => {
                return failed(self.before, format!("kill container error: {message}"));
            }
            Some(Progress::Refused(Refusal::OtherInstance { .. }))
                if self.snapshot.crr.strategy.is_forced =>
            {
                Stop::NotYet(String::new()) // It is ordered again, of the instance that is there.
            }
            Some(Progress::Refused(refusal)) => match judge_refusal(refusal) {
                RefusalMeans::Restarted => Stop::NotOurs,
                RefusalMeans::NotYet(message) => Stop::NotYet(message),
                RefusalMeans::Never(message) => return failed(self.before, message),
            },
            Some(Progress::Unanswered { since, silence }) => self.judge_silence(*silence, *since),
        };
        match stopped {
            Stop::NotYet(message) => Judgement {
                state: ContainerRecreateState {
                    phase: ContainerPhase::Pending,
                    message,
                    ..self.before
                },
                look_again_at: None,
            },
            Stop::Ours => self.judge_return(true),
            Stop::NotOurs => self.judge_return(false),
        }
    }

    fn judge_silence(&self, silence: Silence, since: Now) -> Stop {
        let silent_for = self.now.monotonic - since.monotonic;
        if silent_for >= ASK_WHO_STOPPED && self.snapshot.is_newer_than_fence(self.container) {
            return Stop::NotOurs;
        }
        if silent_for < NODE_SILENCE_SHOWN {
            return Stop::NotYet(String::new());
        }
        let since = since.wall.strftime("%FT%TZ");
        Stop::NotYet(match (silence, &self.snapshot.crr.node) {
            (Silence::Node, Some(node)) => format!("node {node} has not answered since {since}"),
            (Silence::Node, None) => format!("the node has not answered since {since}"),
            (Silence::Bus, _) => format!("the message bus has been away since {since}"),
        })
    }

    /// Judges an instance that was stopped: is its successor up?
    fn judge_return(&self, is_ours: bool) -> Judgement {
        let state = ContainerRecreateState {
            phase: ContainerPhase::Recreating,
            message: String::new(),
            is_killed: self.before.is_killed || is_ours,
            ..self.before.clone()
        };
        let waiting = |message: String| Judgement {
            state: ContainerRecreateState {
                message,
                ..state.clone()
            },
            look_again_at: None,
        };
        let Some(status) = self.snapshot.container_status(&self.container.name) else {
            return waiting(String::new());
        };
        let Some(current) = &status.container_id else {
            return waiting(String::new());
        };
        if self.snapshot.stopped_instance(self.container) == Some(&current.id) {
            return match (will_not_return(status), &status.state) {
                (Some(reason), _) => failed(state, reason),
                (None, ContainerState::Waiting { reason, message }) => {
                    waiting(waiting_reason(reason, message))
                }
                (None, ContainerState::Running { .. } | ContainerState::Terminated { .. }) => {
                    waiting(String::new())
                }
            };
        }
        match &status.state {
            ContainerState::Running { .. } if status.is_ready => self.judge_uptime(current, state),
            ContainerState::Running { .. } => waiting("the new container is not ready".to_owned()),
            ContainerState::Waiting { reason, message } => waiting(waiting_reason(reason, message)),
            ContainerState::Terminated { exit_code, .. } => match will_not_return(status) {
                Some(reason) => failed(state, reason),
                None => waiting(format!("the new container exited with code {exit_code}")),
            },
        }
    }

    /// Succeeded once the ready instance has been seen running for `minStartedSeconds`.
    fn judge_uptime(
        &self,
        current: &RuntimeContainerId,
        state: ContainerRecreateState,
    ) -> Judgement {
        let min_started = self.snapshot.crr.strategy.min_started;
        let seen = self.snapshot.seen_running.get(&self.container.name);
        let seen = seen.filter(|seen| seen.container_id == *current);
        let since = seen.map_or(self.now.monotonic, |seen| seen.since);
        let until = since + min_started;
        if self.now.monotonic < until {
            return Judgement {
                state,
                look_again_at: Some(until),
            };
        }
        Judgement {
            state: ContainerRecreateState {
                phase: ContainerPhase::Succeeded,
                ..state
            },
            look_again_at: None,
        }
    }
}

/// The kubelet's word on why a container is not running.
fn waiting_reason(reason: &Option<String>, message: &Option<String>) -> String {
    let words = reason.iter().chain(message).map(String::as_str);
    words.collect::<Vec<_>>().join(": ")
}

/// Why the kubelet will not start the container again, if it will not.
pub(crate) fn will_not_return(status: &ContainerStatus) -> Option<String> {
    let ContainerState::Terminated { exit_code, .. } = &status.state else {
        return None;
    };
    match status.restart_policy {
        RestartPolicy::Always => None,
        RestartPolicy::OnFailure if *exit_code != 0 => None,
        RestartPolicy::OnFailure => {
            Some("the container exited with code 0 and restartPolicy is OnFailure".to_owned())
        }
        RestartPolicy::Never => Some(format!(
            "the container exited with code {exit_code} and restartPolicy is Never"
        )),
    }
}

fn failed(before: ContainerRecreateState, message: String) -> Judgement {
    Judgement {
        state: ContainerRecreateState {
            phase: ContainerPhase::Failed,
            message,
            ..before
        },
        look_again_at: None,
    }
}

//! What is done to the container: the hook, then the stop, within the grace.
//!
//! Owns the sharing of the grace (kubelet, `killContainer`): the hook has all of it, the stop what is left,
//! at least the floor.

use std::time::Duration;

use jiff::Timestamp;
use model::{order::StopOutcome, pause::Pause, time::after};

use super::{Held, MAX_RUNTIME_DELAY, Phase, delay};
use crate::{Effect, HookResult, Stage, StopResult, machine::Settings};

// === impl Held ===

impl Held {
    pub(in crate::machine) fn on_hook_ended(
        &mut self,
        result: HookResult,
        settings: &Settings,
        now: Timestamp,
    ) -> Vec<Effect> {
        let (Phase::Hooking, Stage::Begun { grace_ends }) = (&self.phase, &self.record.stage)
        else {
            return Vec::new();
        };
        let hook_error = match result {
            HookResult::Succeeded => None,
            HookResult::Failed { message } => Some(message),
            HookResult::CutOff => Some("the hook was cut off at the end of the grace".to_owned()),
        };
        self.end_hook(*grace_ends, hook_error, settings, now)
    }

    pub(in crate::machine) fn on_stop_ended(
        &mut self,
        result: StopResult,
        now: Timestamp,
    ) -> Vec<Effect> {
        if self.phase != Phase::Stopping {
            return Vec::new();
        }
        match result {
            // Stopping => Reporting
            StopResult::Stopped => {
                let hook_error = self.record.hook_error();
                self.finish(StopOutcome::Stopped { hook_error }, now)
            }
            // Stopping => Reporting
            StopResult::NotFound => self.finish(StopOutcome::Gone, now),
            // Stopping => Verifying: a stop that "failed" has often worked, so the runtime is asked
            StopResult::Failed { message } => {
                self.phase = Phase::Verifying { failure: message };
                vec![self.inspect()]
            }
            // Stopping => RuntimeAway
            StopResult::Unavailable { .. } => {
                self.phase = Phase::RuntimeAway {
                    pause: Pause::new(now, delay(0, MAX_RUNTIME_DELAY)),
                    tries: 1,
                };
                Vec::new()
            }
        }
    }

    /// Begins the work on an instance that was seen alive just now.
    pub(in crate::machine) fn begin(&mut self, settings: &Settings, now: Timestamp) -> Vec<Effect> {
        let grace_ends = after(now, self.record.order.grace);
        // Queued => Begun
        self.record.stage = Stage::Begun { grace_ends };
        let mut effects = vec![Effect::Store(self.record.clone())];
        effects.extend(self.act(grace_ends, settings, now));
        effects
    }

    /// Goes on where the record says, the instance being alive.
    pub(super) fn resume(&mut self, settings: &Settings, now: Timestamp) -> Vec<Effect> {
        match self.record.stage {
            Stage::Queued => self.begin(settings, now),
            Stage::Begun { grace_ends } | Stage::HookDone { grace_ends, .. } => {
                self.act(grace_ends, settings, now)
            }
            Stage::Finished { .. } => Vec::new(),
        }
    }

    /// Runs the hook if it has not ended yet and grace is left, else stops.
    fn act(&mut self, grace_ends: Timestamp, settings: &Settings, now: Timestamp) -> Vec<Effect> {
        let hook = match &self.record.stage {
            Stage::Begun { .. } if self.record.has_hook() => self.record.order.pre_stop.clone(),
            Stage::Queued
            | Stage::Begun { .. }
            | Stage::HookDone { .. }
            | Stage::Finished { .. } => None,
        };
        match hook {
            None => self.stop(grace_ends, settings, now),
            Some(_) if grace_ends <= now => {
                let error = "the grace ended before the hook did".to_owned();
                self.end_hook(grace_ends, Some(error), settings, now)
            }
            Some(hook) => {
                // A clock set back must not lengthen the grace.
                let deadline = grace_ends.min(after(now, self.record.order.grace));
                // Waiting | Inspecting => Hooking
                self.phase = Phase::Hooking;
                vec![Effect::RunHook {
                    order: self.record.order.id.clone(),
                    instance: self.record.order.instance.clone(),
                    hook,
                    deadline,
                }]
            }
        }
    }

    pub(super) fn end_hook(
        &mut self,
        grace_ends: Timestamp,
        hook_error: Option<String>,
        settings: &Settings,
        now: Timestamp,
    ) -> Vec<Effect> {
        // Begun => HookDone
        self.record.stage = Stage::HookDone {
            grace_ends,
            hook_error,
        };
        let mut effects = vec![Effect::Store(self.record.clone())];
        effects.extend(self.stop(grace_ends, settings, now));
        effects
    }

    fn stop(&mut self, grace_ends: Timestamp, settings: &Settings, now: Timestamp) -> Vec<Effect> {
        // A clock set back must not lengthen the grace; a hook or a crash must not shorten it below the floor.
        let left = Duration::try_from(now.duration_until(grace_ends)).unwrap_or(Duration::ZERO);
        let timeout = left.min(self.record.order.grace).max(settings.min_grace);
        // Inspecting | Hooking => Stopping
        self.phase = Phase::Stopping;
        vec![Effect::Stop {
            order: self.record.order.id.clone(),
            container_id: self.record.order.instance.container_id.clone(),
            timeout,
        }]
    }
}

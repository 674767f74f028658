//! Checks of what a node does: stops, hooks, answers and its journal.

use std::time::Duration;

use model::{
    crr::Crr,
    ids::{ContainerId, CrrUid},
    order_id::{OrderId, Task},
    phase::CrrPhase,
};
use node_rules::Stage;

use super::{Ledger, Violation};
use crate::World;

/// An order that was sent right before the end may still begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);

// === impl Ledger ===

impl Ledger {
    pub(crate) fn on_over(&mut self, crr: &CrrUid, now: Duration) {
        self.over.entry(crr.clone()).or_insert(now);
    }

    pub(crate) fn on_sent(&mut self, order: &OrderId) {
        if let Some(crr) = order.crr_uid() {
            *self.sent.entry(crr.clone()).or_default() += 1;
        }
    }

    pub(crate) fn on_container_started(&mut self, id: &ContainerId, count: u32, now: Duration) {
        self.instances.insert(id.clone(), (count, now));
    }

    pub(crate) fn on_stored(&mut self, order: &OrderId, stage: &Stage, now: Duration) {
        match stage {
            Stage::Queued => {}
            Stage::Begun { .. } => {
                self.journaled_begin.entry(order.clone()).or_insert(now);
            }
            Stage::HookDone { .. } | Stage::Finished { .. } => {
                self.hooks_ended.insert(order.clone());
            }
        }
    }

    pub(crate) fn on_ended_by(&mut self, order: &OrderId, id: &ContainerId) {
        self.ended_by.insert(order.clone(), id.clone());
    }

    fn request(&self, order: &OrderId) -> Option<&Crr> {
        self.requests.get(order.crr_uid()?)
    }
}

// === impl World ===

impl World {
    /// The executor begins with a hook or a stop.
    pub(crate) fn check_begin(&mut self, order: &OrderId) {
        if !self.ledger.begun.insert(order.clone()) {
            return;
        }
        let Some(crr) = self.ledger.request(order) else {
            return;
        };
        let over = self.ledger.over.get(&crr.uid);
        let late = over.map_or(Duration::ZERO, |over| self.now.saturating_sub(*over));
        let grace = crr.strategy.unready_grace.filter(|_| {
            let pod = self.api.pods.get(&crr.pod);
            pod.is_some_and(|pod| pod.pod.gate.is_some())
        });
        let is_drained = grace.is_none_or(|grace| {
            let since = self.ledger.drained_since.get(&crr.uid);
            since.is_some_and(|since| self.now >= *since + grace)
        });
        let began = self.ledger.journaled_begin.get(order);
        let was_in_time = began
            .zip(over)
            .is_some_and(|(began, over)| *began <= *over + BEGINS_WITHIN);
        if late > BEGINS_WITHIN && was_in_time {
            self.fail(Violation::LateResume(order.clone(), late));
        } else if late > BEGINS_WITHIN {
            self.fail(Violation::LateStop(order.clone(), late));
        } else if !is_drained {
            self.fail(Violation::DrainCutShort(order.clone()));
        }
    }

    pub(crate) fn check_hook(&mut self, order: &OrderId) {
        self.check_begin(order);
        self.ledger.hooks_begun.insert(order.clone());
        if self.ledger.hooks_ended.contains(order) {
            self.fail(Violation::HookRanAgain(order.clone()));
        }
    }

    /// The runtime stops an instance that is alive.
    pub(crate) fn check_stop(&mut self, order: &OrderId, id: &ContainerId) {
        let stopped = self.ledger.stopped.entry(order.clone()).or_default();
        stopped.insert(id.clone());
        let is_second = stopped.len() > 1;
        let Some(crr) = self.ledger.request(order) else {
            return;
        };
        let container = crr.containers.iter().find(|it| it.name == order.container);
        let fence = container.and_then(|container| container.fence.as_ref());
        let (count, started) = self.ledger.instances[id];
        let is_meant = fence.is_some_and(|fence| {
            fence.container_id.id == *id || (crr.strategy.is_forced && count > fence.restart_count)
        });
        let has_hook = container.is_some_and(|container| container.pre_stop.is_some());
        let key = (crr.uid.clone(), order.container.clone());
        let recreating = self.ledger.recreating.get(&key);
        if !is_meant {
            self.fail(Violation::ForeignStop(order.clone(), id.clone()));
        } else if is_second {
            self.fail(Violation::StoppedTwice(order.clone()));
        } else if recreating.is_some_and(|since| started > *since) {
            self.fail(Violation::SuccessorStopped(order.clone(), id.clone()));
        } else if has_hook && !self.ledger.hooks_begun.contains(order) {
            self.fail(Violation::HookSkipped(order.clone()));
        }
    }

    /// A stop is answered as accepted or done.
    pub(crate) fn check_answer(&mut self, node: usize, order: &OrderId) {
        let is_journaled = self.executors[node].journal.contains_key(order);
        if order.task == Task::Stop && !is_journaled {
            self.fail(Violation::AnsweredUnjournaled(order.clone()));
        }
    }

    /// An order leaves the scheduler.
    pub(crate) fn check_send(&mut self, order: &OrderId) {
        let crr = order.crr_uid().and_then(|uid| self.api.find_crr(uid));
        let is_written = crr.is_none_or(|crr| {
            matches!(
                crr.status.phase,
                Some(CrrPhase::Recreating | CrrPhase::Completed)
            )
        });
        if !is_written {
            self.fail(Violation::OrderBeforeStatus(order.clone()));
        }
    }

    pub(crate) fn check_forget(&mut self, order: &OrderId) {
        let is_wanted = order
            .crr_uid()
            .is_some_and(|uid| self.unended().contains(uid.as_str()));
        if is_wanted {
            self.fail(Violation::ForgottenTooEarly(order.clone()));
        }
    }
}

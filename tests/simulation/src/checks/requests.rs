//! Checks of what the scheduler writes: statuses, gates, ends and deletions.

use std::time::Duration;

use crr_rules::messages;
use model::{
    crr::Crr,
    ids::{ContainerName, PodUid},
    order_id::{OrderId, Owner, Task},
    phase::{ContainerPhase, CrrPhase},
    pod::ContainerStatus,
};

use super::{Ledger, Violation};
use crate::World;

/// Kubernetes' times have whole seconds, also that of the creation.
const GRAIN: Duration = Duration::from_secs(2);

/// The end is counted from its decision, and written up to so long after.
const LATEST_WRITE: Duration = Duration::from_secs(5);

/// So often a node has to be asked before it counts as silent.
const LEAST_ATTEMPTS: u32 = 6;

// === impl Ledger ===

impl Ledger {
    /// Pod status shows a container running and ready.
    pub(crate) fn on_ready_shown(&mut self, pod: &PodUid, status: &ContainerStatus) {
        let shown = self.ready_shown.entry((pod.clone(), status.name.clone()));
        let id = status.container_id.as_ref();
        if let Some((count, started)) = id.and_then(|id| self.instances.get(&id.id)) {
            shown.or_default().insert(*count, *started);
        }
    }

    pub(crate) fn on_other_holder(&mut self, pod: &PodUid, is_held: bool) {
        self.other_holders.insert(pod.clone(), is_held);
    }

    /// The restart count that the successor of a container has to exceed.
    fn replaced_count(&self, crr: &Crr, container: &ContainerName) -> Option<u32> {
        let order = OrderId::new(Owner::Crr(crr.uid.clone()), Task::Stop, container.clone());
        let stopped = self.ended_by.get(&order);
        if let Some((count, _)) = stopped.and_then(|id| self.instances.get(id)) {
            return Some(*count);
        }
        let named = crr.containers.iter().find(|it| it.name == *container)?;
        Some(named.fence.as_ref()?.restart_count)
    }

    /// True if pod status showed a successor running and ready for long enough.
    fn has_succeeded(&self, crr: &Crr, container: &ContainerName, now: Duration) -> bool {
        let Some((pod, before)) = crr.pod_uid.clone().zip(self.replaced_count(crr, container))
        else {
            return false;
        };
        let shown = self.ready_shown.get(&(pod, container.clone()));
        let mut newer = shown
            .into_iter()
            .flat_map(|shown| shown.range(before + 1..));
        newer.any(|(_, since)| now >= *since + crr.strategy.min_started)
    }

    fn was_stopped(&self, crr: &Crr, container: &ContainerName) -> bool {
        let order = OrderId::new(Owner::Crr(crr.uid.clone()), Task::Stop, container.clone());
        self.journaled_begin.contains_key(&order)
    }
}

// === impl World ===

impl World {
    /// A status was written by the scheduler.
    pub(crate) fn check_status(&mut self, before: &Crr, after: &Crr) {
        for state in &after.status.containers {
            let key = (after.uid.clone(), state.name.clone());
            if state.phase == ContainerPhase::Recreating {
                self.ledger.recreating.entry(key).or_insert(self.now);
            }
            let ledger = &self.ledger;
            let (uid, name) = (after.uid.clone(), state.name.clone());
            if state.phase == ContainerPhase::Succeeded
                && !ledger.has_succeeded(after, &state.name, self.now)
            {
                self.fail(Violation::FalseSuccess(uid, name));
            } else if state.is_killed && !ledger.was_stopped(after, &state.name) {
                self.fail(Violation::FalseKill(uid, name));
            }
        }
        let is_end = before.status.phase != Some(CrrPhase::Completed)
            && after.status.phase == Some(CrrPhase::Completed);
        if is_end {
            self.ledger.on_over(&after.uid, self.now);
            self.check_request_end(after);
        }
    }

    fn age(&self, crr: &Crr) -> Duration {
        let created = crr.created_at.duration_since(testkit::wall(0));
        let created = Duration::try_from(created).unwrap_or_default();
        self.now.saturating_sub(created)
    }

    fn check_request_end(&mut self, crr: &Crr) {
        let uid = crr.uid.clone();
        let end = [
            "",
            messages::POD_GONE,
            messages::DEADLINE,
            messages::NODE_SILENT,
        ];
        let kind = end.iter().find(|end| **end == crr.status.message);
        self.coverage
            .count("end of a request", kind.copied().unwrap_or("other"));
        match crr.status.message.as_str() {
            messages::DEADLINE => {
                let deadline = crr.active_deadline.unwrap_or_default();
                if self.age(crr) + GRAIN < deadline {
                    self.fail(Violation::TooEarly(uid));
                }
            }
            messages::POD_GONE => {
                let pod = self.api.pods.get(&crr.pod);
                let is_there = pod.is_some_and(|pod| {
                    Some(&pod.pod.uid) == crr.pod_uid.as_ref() && !pod.pod.is_being_deleted
                });
                if is_there {
                    self.fail(Violation::FalsePodGone(uid));
                }
            }
            messages::NODE_SILENT => {
                let asked = self.ledger.sent.get(&uid).copied();
                if asked.unwrap_or_default() < LEAST_ATTEMPTS {
                    self.fail(Violation::HastySilence(uid));
                }
            }
            _ => {}
        }
    }

    /// The scheduler's `Close` or `Delete` was done.
    pub(crate) fn check_close(&mut self, crr: &Crr, is_deletion: bool) {
        if crr.status.completed_at.is_none() && (is_deletion || !crr.is_being_deleted) {
            self.fail(Violation::WrongObject(crr.uid.clone()));
        }
        let over = self.ledger.over.get(&crr.uid).copied();
        let due = over
            .zip(crr.ttl_after_finished)
            .map(|(over, ttl)| over + ttl);
        if is_deletion && due.is_none_or(|due| self.now + GRAIN + LATEST_WRITE < due) {
            self.fail(Violation::TooEarly(crr.uid.clone()));
        }
    }

    /// A gate was written for a request.
    pub(crate) fn check_gate(&mut self, crr: &Crr, is_held: bool) {
        let Some(pod) = self.api.pods.get(&crr.pod) else {
            return;
        };
        let uid = pod.pod.uid.clone();
        let is_kept = pod.pod.gate.as_ref().is_some_and(Self::is_held_by_other);
        let is_held_by_other = self.ledger.other_holders.get(&uid).copied();
        if is_held_by_other.unwrap_or_default() != is_kept {
            self.fail(Violation::OtherHolderLost(uid));
        }
        if is_held {
            let now = self.now;
            let since = self.ledger.drained_since.entry(crr.uid.clone());
            since.or_insert(now);
        }
    }
}

//! From a plan to effects: at most one write of a CRR at a time, and orders only beside no write.
//!
//! Owns whose turn it is, which pods are watched, and when a CRR is forgotten.

use model::{
    ids::{CrrKey, PodKey},
    order::Order,
    order_id::Task,
    time::Now,
};

use super::Machine;
use crate::{
    effect::Effect,
    entry::{CrrEntry, Request, Target},
    kubernetes_events::CrrEvent,
    limits::progress_interval,
    plan::{Plan, plan},
    snapshot::{PodView, Turn},
    write::Write,
};

// === impl Machine ===

impl Machine {
    /// Decides what a CRR needs now.
    pub(super) fn advance(&mut self, crr: &CrrKey, now: Now) {
        let Some(entry) = self.crrs.get_mut(crr) else {
            return;
        };
        let view = self.pods.get(&entry.crr.pod);
        let view = view.cloned().unwrap_or(PodView::Unknown);
        if let PodView::Present(pod) = &view {
            entry.record_pod(pod, now.monotonic);
        }
        if entry.request != Request::Idle || !self.is_listed {
            return;
        }
        let turn = self.turn(crr);
        let progress_every = progress_interval(self.crrs.unended().len());
        let Some(entry) = self.crrs.get_mut(crr) else {
            return;
        };
        let snapshot = entry.snapshot(view, turn, &self.book, progress_every);
        let plan = plan(&snapshot, now);
        // Its first write is its beginning, answered or not.
        entry.has_begun |= snapshot.turn == Turn::Mine && plan.write.is_some();
        self.carry_out(crr, plan, now);
    }

    /// A CRR's place among those of its pod: the one at work may act, otherwise the oldest.
    pub(super) fn turn(&self, crr: &CrrKey) -> Turn {
        let Some(entry) = self.crrs.get(crr) else {
            return Turn::Mine;
        };
        let of_pod = self.crrs.of_pod(&entry.crr.pod);
        let active = of_pod.filter(|other| other.is_active());
        let first = active.min_by_key(|other| {
            let name = other.crr.key.name.clone();
            (!other.is_at_work(), other.crr.created_at, name)
        });
        match first {
            Some(first) if first.crr.key != *crr => Turn::Behind(first.crr.key.name.clone()),
            Some(_) | None => Turn::Mine,
        }
    }

    fn carry_out(&mut self, crr: &CrrKey, plan: Plan, now: Now) {
        let Plan {
            write,
            orders,
            nudge,
            events,
            needs_pod,
            wake_at,
        } = plan;
        self.wakes.set(crr, wake_at);
        let Some(entry) = self.crrs.get(crr) else {
            return;
        };
        let pod = entry.crr.pod.clone();
        if needs_pod {
            self.watch(&pod);
        }
        self.publish(crr, events);
        match write {
            Some(write) => self.write(crr, write),
            None => {
                for order in orders {
                    self.send(crr, &order, now);
                }
                if nudge {
                    self.nudge(crr, now);
                }
                self.forget_ended(crr, now);
            }
        }
        self.unwatch_unneeded(&pod);
    }

    fn write(&mut self, crr: &CrrKey, write: Write) {
        let Some(entry) = self.crrs.get_mut(crr) else {
            return;
        };
        // Idle => UnderWay
        entry.request = Request::UnderWay {
            target: match &write {
                Write::Status(_) => Target::Status,
                Write::AddFinalizer | Write::Close | Write::Delete => Target::Object,
                Write::Gate(_) => Target::Gate,
            },
            version: entry.crr.version.clone(),
        };
        let crr = Box::new(entry.crr.clone());
        let write = Box::new(write);
        self.effects.push(Effect::Write { crr, write });
    }

    /// Publishes the Kubernetes events that were not published yet.
    fn publish(&mut self, crr: &CrrKey, events: Vec<CrrEvent>) {
        let Some(entry) = self.crrs.get_mut(crr) else {
            return;
        };
        for event in events {
            if entry.published.insert(event.name.clone()) {
                let crr = Box::new(entry.crr.clone());
                self.effects.push(Effect::Publish { crr, event });
            }
        }
    }

    fn nudge(&mut self, crr: &CrrKey, now: Now) {
        let Some(entry) = self.crrs.get_mut(crr) else {
            return;
        };
        let Some(pod_uid) = entry.crr.pod_uid.clone() else {
            return;
        };
        entry.nudged_at = Some(now.monotonic);
        self.effects.push(Effect::Nudge {
            crr: crr.clone(),
            uid: entry.crr.uid.clone(),
            pod: entry.crr.pod.clone(),
            pod_uid,
        });
    }

    /// Sends a wanted order when the order book says that it is due.
    fn send(&mut self, crr: &CrrKey, order: &Order, now: Now) {
        let due = self.book.send_due(order, now.monotonic);
        if let Some(again_at) = self.book.send_again_at(&order.id) {
            self.wakes.set_sooner(crr, again_at);
        }
        let entry = self.crrs.get(crr);
        if let (Some(sending), Some(entry)) = (due, entry)
            && let Some(node) = entry.crr.node.clone()
        {
            self.effects.push(Effect::Send {
                crr: entry.crr.uid.clone(),
                node,
                sending: Box::new(sending),
            });
        }
    }

    /// Forgets an ended CRR that nothing is waited for any more; its object stays in the API server.
    fn forget_ended(&mut self, crr: &CrrKey, now: Now) {
        let Some(entry) = self.crrs.get(crr) else {
            return;
        };
        if !entry.is_ended() || entry.crr.has_finalizer() {
            return;
        }
        let mut stops = entry.order_ids(Task::Stop);
        let is_outstanding = stops.any(|order| self.book.send_again_at(&order).is_some());
        drop(stops);
        let (until, is_caught_up) = (entry.last_report_at(), entry.has_watch_caught_up());
        if is_outstanding && now.wall < until {
            self.wakes.set_sooner(crr, now.moment_of(until));
        }
        if is_caught_up && self.wakes.get(crr).is_none() {
            self.forget(crr);
        }
    }

    /// Removes a CRR and what the order book holds of it.
    pub(super) fn forget(&mut self, crr: &CrrKey) -> Option<CrrEntry> {
        let entry = self.crrs.remove(crr)?;
        for task in [Task::Stop, Task::RemoveDeadInstances] {
            for order in entry.order_ids(task) {
                self.book.forget(&order);
            }
        }
        self.wakes.set(crr, None);
        Some(entry)
    }

    fn watch(&mut self, pod: &PodKey) {
        if !self.pods.contains_key(pod) {
            self.pods.insert(pod.clone(), PodView::Unknown);
            self.effects.push(Effect::WatchPod(pod.clone()));
        }
    }

    /// Ends the watch of a pod that no CRR needs any more.
    pub(super) fn unwatch_unneeded(&mut self, pod: &PodKey) {
        let is_needed = self.crrs.of_pod(pod).any(CrrEntry::needs_pod);
        if !is_needed && self.pods.remove(pod).is_some() {
            self.effects.push(Effect::UnwatchPod(pod.clone()));
        }
    }
}

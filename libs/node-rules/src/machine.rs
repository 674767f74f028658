//! The machine: one owner of all orders of the node.
//!
//! Owns the dispatch of events, the slots of stops, recovery and retention. What one accepted stop goes through is in
//! `stop.rs`, the fence in `admission.rs`, removals in `removal.rs`.

use std::collections::{BTreeMap, VecDeque};

use model::{
    instances::Observed,
    order::{Answer, Sending, Verb},
    order_id::OrderId,
    time::{Monotonic, Now},
};

use crate::{
    admission::{Admission, check_stop},
    effect::{Action, Effects},
    event::{Event, ReplyToken},
    index::Index,
    record::{Record, StopOrder},
    removal::{Removals, shutting_down},
    settings::Settings,
    stop::AcceptedStop,
};

/// Decides what a node does with its orders.
#[derive(Clone, Debug)]
pub struct Machine {
    settings: Settings,
    /// Stops that are not accepted: the runtime was asked if their fence holds.
    admissions: BTreeMap<OrderId, Admission>,
    /// Stops that are accepted and journaled, finished ones included.
    stops: BTreeMap<OrderId, AcceptedStop>,
    index: Index,
    /// Accepted stops without a slot, oldest first.
    queue: VecDeque<OrderId>,
    removals: Removals,
    is_draining: bool,
    /// Effects of the event that is being handled.
    effects: Effects,
}

// === impl Machine ===

impl Machine {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            admissions: BTreeMap::new(),
            stops: BTreeMap::new(),
            index: Index::default(),
            queue: VecDeque::new(),
            removals: Removals::new(settings.max_concurrent_removals),
            is_draining: false,
            effects: Effects::default(),
        }
    }

    /// Records an event and returns its effects.
    #[must_use = "a lost record, answer or action is lost for good"]
    pub fn on_event(&mut self, event: Event, now: Now) -> Effects {
        match event {
            Event::Recovered { records } => self.recover(records, now),
            Event::Ordered {
                sending,
                traceparent,
                reply,
            } => self.on_ordered(sending, traceparent, reply, now),
            Event::Inspected { order, observed } => self.on_inspected(&order, observed, now),
            Event::HookEnded { order, result } => {
                self.change(&order, |stop, effects| {
                    stop.on_hook_ended(result, now, effects);
                });
            }
            Event::StopEnded { order, result } => {
                self.change(&order, |stop, effects| {
                    stop.on_stop_ended(result, now, effects);
                });
            }
            Event::InstancesListed { order, listed } => {
                let stop = self.unfinished_stop_beside(&order);
                let removals = &mut self.removals;
                removals.on_listed(&order, listed, stop, &mut self.effects);
            }
            Event::RemovalEnded { order, result } => {
                self.removals.on_ended(&order, result, &mut self.effects);
            }
            Event::ReportAcknowledged { order, sequence } => {
                self.change(&order, |stop, _| stop.on_report_acknowledged(sequence));
            }
            Event::ReportFailed { order, sequence } => {
                self.change(&order, |stop, _| stop.on_report_failed(sequence, now));
            }
            Event::DrainBegun => {
                self.is_draining = true;
                self.removals.on_drain_begun(&mut self.effects);
            }
            Event::Tick => self.on_tick(now),
        }
        self.grant_slots();
        std::mem::take(&mut self.effects)
    }

    /// When to send `Event::Tick`; `None` while only other events matter.
    pub fn next_deadline(&self, now: Now) -> Option<Monotonic> {
        self.index.next_deadline(self.settings.retention, now)
    }

    /// The records of all accepted stops, finished ones included.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        self.stops.values().map(AcceptedStop::record)
    }

    /// The records of the stops that are not finished, or whose report is not acknowledged.
    pub fn open_records(&self) -> impl Iterator<Item = Record> {
        let open = self.index.unfinished.iter();
        let open = open.chain(&self.index.unacknowledged);
        open.filter_map(|order| self.record(order))
    }

    pub fn record(&self, order: &OrderId) -> Option<Record> {
        self.stops.get(order).map(AcceptedStop::record)
    }

    /// True if the order is being inspected, worked on or remembered.
    pub fn is_known(&self, order: &OrderId) -> bool {
        self.stops.contains_key(order)
            || self.admissions.contains_key(order)
            || self.removals.instance(order).is_some()
    }

    pub fn unfinished(&self) -> usize {
        self.index.unfinished.len()
    }

    /// Number of stops that are finished and remembered.
    pub fn finished(&self) -> usize {
        self.stops.len() - self.unfinished()
    }

    /// Number of stops that hold a slot: their hook or stop runs or is about to.
    pub fn acting(&self) -> usize {
        self.index.acting.len()
    }

    /// Takes up the journal: reports finished stops, queues the others.
    fn recover(&mut self, mut records: Vec<Record>, now: Now) {
        records.sort_by_key(|record| record.accepted_at);
        for record in records {
            let stop = AcceptedStop::recovered(record, now, &mut self.effects);
            if !stop.is_finished() {
                self.queue.push_back(stop.id().clone());
            }
            self.add(stop);
        }
    }

    fn on_ordered(
        &mut self,
        sending: Sending,
        traceparent: Option<String>,
        reply: ReplyToken,
        now: Now,
    ) {
        let order = sending.order;
        match order.verb {
            Verb::Stop(stop) => self.on_stop_ordered(Admission {
                order: StopOrder {
                    id: order.id,
                    attempt: sending.attempt,
                    instance: order.instance,
                    reason: order.reason,
                    stop,
                },
                traceparent,
                replies: vec![reply],
                asked_at: now.monotonic,
            }),
            Verb::RemoveDeadInstances => {
                let (id, removals) = (order.id, &mut self.removals);
                if self.is_draining && removals.instance(&id).is_none() {
                    self.effects.refuse(vec![reply], shutting_down());
                } else {
                    removals.on_ordered(id, order.instance, reply, &mut self.effects);
                }
            }
        }
    }

    /// Answers a known stop, or asks the runtime if the fence of a new one holds.
    fn on_stop_ordered(&mut self, admission: Admission) {
        let order = &admission.order;
        if let Some(stop) = self.stops.get_mut(&order.id) {
            let answer = stop.on_ordered_again(order.attempt);
            self.effects.answer(admission.replies, &answer);
        } else if let Some(known) = self.admissions.get_mut(&order.id) {
            known.join(admission);
        } else if let Some(refusal) = check_stop(order) {
            self.effects.refuse(admission.replies, refusal);
        } else {
            self.effects.actions.push(Action::Inspect {
                order: order.id.clone(),
                instance: order.instance.clone(),
            });
            self.admissions.insert(order.id.clone(), admission);
        }
    }

    fn on_inspected(&mut self, order: &OrderId, observed: Observed, now: Now) {
        let Some(admission) = self.admissions.remove(order) else {
            return self.change(order, |stop, effects| {
                stop.on_inspected(observed, now, effects);
            });
        };
        match admission.refuse(observed, now.monotonic) {
            // Admission => unknown: nothing is journaled, the same order may come again.
            Some(refusal) => self.effects.refuse(admission.replies, refusal),
            None => self.accept(admission, now),
        }
    }

    /// Journals and answers a stop, and begins it if there is a free slot.
    fn accept(&mut self, admission: Admission, now: Now) {
        let mut stop = AcceptedStop::accepted(admission.order, admission.traceparent, now);
        if self.may_act(&stop) {
            // Admission => Hooking | Stopping
            stop.begin(now, &mut self.effects);
        } else {
            // Admission => Queued
            self.queue.push_back(stop.id().clone());
        }
        self.effects.store.push(stop.record());
        self.effects.answer(admission.replies, &Answer::Accepted);
        self.add(stop);
    }

    /// Resumes stops whose pause is over and forgets those whose retention is.
    ///
    /// The retention is measured on the wall clock, which outlives a restart.
    fn on_tick(&mut self, now: Now) {
        while let Some(order) = self.index.due(now.monotonic) {
            self.change(&order, AcceptedStop::on_wakeup);
        }
        while let Some(order) = self.index.expired(self.settings.retention, now.wall) {
            // Acknowledged => unknown
            if let Some(stop) = self.stops.remove(&order) {
                self.index.remove(&stop);
            }
            self.effects.forget.push(order);
        }
    }

    /// Gives free slots to waiting stops, oldest first.
    fn grant_slots(&mut self) {
        while self.has_free_slot()
            && let Some(position) = self.queue.iter().position(|order| self.is_ready(order))
            && let Some(order) = self.queue.remove(position)
        {
            self.change(&order, AcceptedStop::on_slot_granted);
        }
    }

    fn is_ready(&self, order: &OrderId) -> bool {
        let stop = self.stops.get(order);
        stop.is_some_and(|stop| self.may_act(stop))
    }

    /// True if the stop may take a slot. Two orders for one instance never act at once: its hook must not run twice.
    fn may_act(&self, stop: &AcceptedStop) -> bool {
        let container_id = &stop.instance().container_id;
        self.has_free_slot() && !self.index.acting.contains(container_id)
    }

    fn has_free_slot(&self) -> bool {
        !self.is_draining && self.acting() < self.settings.max_concurrent_stops.max(1)
    }

    /// An unfinished stop of the container of a removal.
    fn unfinished_stop_beside(&self, removal: &OrderId) -> Option<OrderId> {
        let named = self.removals.instance(removal)?;
        let is_of_container = |order: &&OrderId| {
            self.stops.get(*order).is_some_and(|stop| {
                let instance = stop.instance();
                instance.pod_uid == named.pod_uid && instance.container == named.container
            })
        };
        let mut unfinished = self.index.unfinished.iter();
        unfinished.find(is_of_container).cloned()
    }

    fn add(&mut self, stop: AcceptedStop) {
        self.index.add(&stop);
        self.stops.insert(stop.id().clone(), stop);
    }

    /// Changes an accepted stop, if there is one of that id; stores each new stage and keeps the index in step.
    fn change(&mut self, order: &OrderId, change: impl FnOnce(&mut AcceptedStop, &mut Effects)) {
        if let Some(stop) = self.stops.get_mut(order) {
            let stored = stop.stage();
            self.index.remove(stop);
            change(stop, &mut self.effects);
            self.index.add(stop);
            if stop.stage() != stored {
                self.effects.store.push(stop.record());
            }
        }
    }
}

#[cfg(test)]
mod tests;

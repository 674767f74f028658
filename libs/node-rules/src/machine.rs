//! The machine: admission by the fence, slots, recovery and retention.
//!
//! Owns all orders of the node and who may act. What one accepted order goes through is in `held.rs`.
//! The rules are those of docs/protocol.md, section "Orders".

mod held;

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use jiff::Timestamp;
use model::{
    ids::OrderId,
    order::{MAX_GRACE, OrderAnswer, Refusal, StopOrder},
    time::elapsed,
};

use self::held::Held;
use crate::{Effect, Event, InstanceState, Observed, Record, ReplyToken, UnfinishedStop};

/// What an operator may turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// At most so many orders have a hook or a stop running at once; others wait. At least 1.
    pub max_concurrent_stops: usize,
    /// At least so long the runtime waits before it kills, however long the hook took (kubelet: 2 s).
    pub min_grace: Duration,
    /// So long a finished order is remembered after its end, once a leader has acknowledged it.
    pub retention: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_concurrent_stops: 4,
            min_grace: Duration::from_secs(2),
            retention: Duration::from_secs(24 * 3600),
        }
    }
}

/// Decides what a node does with its orders.
#[derive(Clone, Debug)]
pub struct Machine {
    settings: Settings,
    orders: BTreeMap<OrderId, Entry>,
    /// Accepted orders without a slot, oldest first.
    queue: VecDeque<OrderId>,
    is_draining: bool,
}

#[derive(Clone, Debug)]
enum Entry {
    /// Not accepted: the runtime was asked whether the fence holds.
    Admitting(Admitting),
    /// Accepted and journaled.
    Held(Held),
}

#[derive(Clone, Debug)]
struct Admitting {
    order: StopOrder,
    trace_parent: Option<String>,
    replies: Vec<ReplyToken>,
    /// When it was last sent.
    asked_at: Timestamp,
}

// === impl Machine ===

impl Machine {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            orders: BTreeMap::new(),
            queue: VecDeque::new(),
            is_draining: false,
        }
    }

    /// Takes what happened and says what to do, in order.
    pub fn on_event(&mut self, event: Event, now: Timestamp) -> Vec<Effect> {
        let mut effects = match event {
            Event::Recovered { records } => self.recover(records),
            Event::Ordered {
                order,
                trace_parent,
                reply,
            } => self.take_order(order, trace_parent, reply, now),
            Event::Inspected { order, observed } => self.take_inspection(&order, observed, now),
            Event::HookEnded { order, result } => {
                let settings = self.settings;
                self.with_held(&order, |held| held.on_hook_ended(result, &settings, now))
            }
            Event::StopEnded { order, result } => {
                self.with_held(&order, |held| held.on_stop_ended(result, now))
            }
            Event::ReportAcknowledged { order, sequence } => {
                self.with_held(&order, |held| held.on_report_acknowledged(sequence))
            }
            Event::ReportFailed { order, sequence } => {
                self.with_held(&order, |held| held.on_report_failed(sequence, now))
            }
            Event::DrainBegun => {
                self.is_draining = true;
                Vec::new()
            }
            Event::Tick => self.tick(now),
        };
        effects.extend(self.grant_slots());
        effects
    }

    /// When to send `Event::Tick`; `None` while only other events matter.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.held()
            .filter_map(|held| held.next_deadline(&self.settings))
            .min()
    }

    /// The records of all accepted orders, finished ones included.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.held().map(|held| &held.record)
    }

    /// The record of one accepted order.
    pub fn record(&self, order: &OrderId) -> Option<&Record> {
        match self.orders.get(order)? {
            Entry::Admitting(_) => None,
            Entry::Held(held) => Some(&held.record),
        }
    }

    /// Whether an order is being looked at, worked on or remembered.
    pub fn is_known(&self, order: &OrderId) -> bool {
        self.orders.contains_key(order)
    }

    /// How many orders are accepted and not finished.
    pub fn unfinished(&self) -> usize {
        self.unfinished_stops().count()
    }

    /// What these orders stop: nothing of it may be dropped.
    pub fn unfinished_stops(&self) -> impl Iterator<Item = UnfinishedStop> {
        self.records().filter_map(UnfinishedStop::of)
    }

    /// How many orders have a hook or a stop running, or are about to.
    pub fn acting(&self) -> usize {
        self.held().filter(|held| held.has_slot()).count()
    }

    fn held(&self) -> impl Iterator<Item = &Held> {
        self.orders.values().filter_map(|entry| match entry {
            Entry::Admitting(_) => None,
            Entry::Held(held) => Some(held),
        })
    }

    fn with_held(
        &mut self,
        order: &OrderId,
        step: impl FnOnce(&mut Held) -> Vec<Effect>,
    ) -> Vec<Effect> {
        match self.orders.get_mut(order) {
            Some(Entry::Held(held)) => step(held),
            Some(Entry::Admitting(_)) | None => Vec::new(),
        }
    }

    /// Takes the journal up: reports what is finished, queues what is not.
    fn recover(&mut self, mut records: Vec<Record>) -> Vec<Effect> {
        records.sort_by_key(|record| record.accepted_at);
        let mut effects = Vec::new();
        for record in records {
            let id = record.order.id.clone();
            let (held, first) = Held::recovered(record);
            if !held.is_finished() {
                self.queue.push_back(id.clone());
            }
            self.orders.insert(id, Entry::Held(held));
            effects.extend(first);
        }
        effects
    }

    fn take_order(
        &mut self,
        order: StopOrder,
        trace_parent: Option<String>,
        reply: ReplyToken,
        now: Timestamp,
    ) -> Vec<Effect> {
        match self.orders.get_mut(&order.id) {
            Some(Entry::Admitting(admitting)) => {
                admitting.replies.push(reply);
                admitting.asked_at = now;
                admitting.order.begin_within = order.begin_within;
                Vec::new()
            }
            Some(Entry::Held(held)) => {
                let answer = held.on_ordered_again(order.attempt);
                vec![Effect::Answer { reply, answer }]
            }
            None => {
                if let Some(refusal) = check_order(&order) {
                    let answer = OrderAnswer::Refused(refusal);
                    return vec![Effect::Answer { reply, answer }];
                }
                let inspect = Effect::Inspect {
                    order: order.id.clone(),
                    instance: order.instance.clone(),
                };
                let admitting = Admitting {
                    order,
                    trace_parent,
                    replies: vec![reply],
                    asked_at: now,
                };
                self.orders
                    .insert(admitting.order.id.clone(), Entry::Admitting(admitting));
                vec![inspect]
            }
        }
    }

    fn take_inspection(
        &mut self,
        order: &OrderId,
        observed: Observed,
        now: Timestamp,
    ) -> Vec<Effect> {
        let settings = self.settings;
        match self.orders.remove(order) {
            None => Vec::new(),
            Some(Entry::Held(mut held)) => {
                let effects = held.on_inspected(observed, &settings, now);
                self.orders.insert(order.clone(), Entry::Held(held));
                effects
            }
            Some(Entry::Admitting(admitting)) => match refuse_now(&admitting, observed, now) {
                // Admitting => unknown: nothing is journaled, the same order may come again
                Some(refusal) => answer_all(admitting.replies, &OrderAnswer::Refused(refusal)),
                None => self.accept(admitting, now),
            },
        }
    }

    /// Journals, answers, and begins at once if there is room.
    fn accept(&mut self, admitting: Admitting, now: Timestamp) -> Vec<Effect> {
        let id = admitting.order.id.clone();
        let has_room = !self.is_draining
            && self.acting() < self.settings.max_concurrent_stops.max(1)
            && !self.is_being_stopped(&admitting.order);
        let mut held = Held::accepted(admitting.order, admitting.trace_parent, now);
        // Admitting => Hooking | Stopping | Waiting
        let mut effects = if has_room {
            held.begin(&self.settings, now)
        } else {
            self.queue.push_back(id.clone());
            vec![Effect::Store(held.record.clone())]
        };
        self.orders.insert(id, Entry::Held(held));
        // The record is first in the list; the answer must not wait for the hook behind it.
        effects.splice(1..1, answer_all(admitting.replies, &OrderAnswer::Accepted));
        effects
    }

    /// Lets waiting orders inspect their instance and go on, oldest first, as far as there are slots.
    fn grant_slots(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        let mut waiting = std::mem::take(&mut self.queue);
        while let Some(id) = waiting.pop_front() {
            let has_room =
                !self.is_draining && self.acting() < self.settings.max_concurrent_stops.max(1);
            let is_free = has_room
                && self
                    .record(&id)
                    .is_some_and(|record| !self.is_being_stopped(&record.order));
            if is_free {
                effects.extend(self.with_held(&id, Held::take_slot));
            } else {
                self.queue.push_back(id);
            }
        }
        effects
    }

    /// Whether another order is at work on the same instance: its hook must not run twice at once.
    fn is_being_stopped(&self, order: &StopOrder) -> bool {
        self.held().any(|held| {
            held.has_slot()
                && held.record.order.id != order.id
                && held.record.order.instance.container_id == order.instance.container_id
        })
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        let settings = self.settings;
        let mut effects = Vec::new();
        self.orders.retain(|id, entry| match entry {
            Entry::Admitting(_) => true,
            Entry::Held(held) => {
                let is_due = held.is_due(&settings, now);
                if is_due && held.is_acknowledged() {
                    effects.push(Effect::Forget(id.clone()));
                    return false;
                }
                if is_due {
                    effects.extend(held.on_deadline());
                }
                true
            }
        });
        effects
    }
}

fn answer_all(replies: Vec<ReplyToken>, answer: &OrderAnswer) -> Vec<Effect> {
    replies
        .into_iter()
        .map(|reply| Effect::Answer {
            reply,
            answer: answer.clone(),
        })
        .collect()
}

/// What makes an order unusable whatever the runtime says.
fn check_order(order: &StopOrder) -> Option<Refusal> {
    let message = if order.id.as_str().is_empty() {
        "it has no id"
    } else if order.instance.container_id.as_str().is_empty() {
        "it names no container id"
    } else if order.grace > MAX_GRACE {
        "its grace is longer than a year"
    } else {
        return None;
    };
    Some(Refusal::Invalid {
        message: message.to_owned(),
    })
}

/// Whoever asked so long ago may not want it any more; whoever still does asks again.
const ASKED_TOO_LONG_AGO: Duration = Duration::from_secs(10);

fn refuse_now(admitting: &Admitting, observed: Observed, now: Timestamp) -> Option<Refusal> {
    let late = || Refusal::RuntimeUnavailable {
        message: "it took too long to answer".to_owned(),
    };
    let is_late = elapsed(admitting.asked_at, now) > ASKED_TOO_LONG_AGO;
    refuse(&admitting.order, observed).or_else(|| is_late.then(late))
}

/// The fence: only the instance named, and only while it is the newest and alive.
///
/// The restart count is informative: the container id alone is the identity.
fn refuse(order: &StopOrder, observed: Observed) -> Option<Refusal> {
    match observed {
        Observed::NoPod => Some(Refusal::NoSuchPod),
        Observed::NoContainer => Some(Refusal::NoSuchContainer),
        Observed::Unavailable { message } => Some(Refusal::RuntimeUnavailable { message }),
        Observed::Newest {
            container_id,
            restart_count,
            state,
        } => {
            if container_id != order.instance.container_id {
                return Some(Refusal::OtherInstance {
                    container_id,
                    restart_count,
                });
            }
            match state {
                InstanceState::Alive => None,
                InstanceState::Exited => Some(Refusal::AlreadyExited),
            }
        }
    }
}

#[cfg(test)]
mod tests;

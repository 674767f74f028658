//! The order book: one entry per order that was sent.
//!
//! Owns the times between two sendings and the progress of an order (docs/protocol.md, "The leader's side"). All of it may
//! be lost: an order's id is derived, so that the next leader sends the same order and the node answers from its journal.

use std::{collections::BTreeMap, time::Duration};

use model::{
    ids::ContainerId,
    order::{Answer, Order, Outcome, Refusal, Report, Sending},
    order_id::{OrderId, Task},
    retry::Doubling,
    time::{Monotonic, Now},
};

/// How long the answer to one sending is waited for.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// Pause after a sending without an answer, or with a refusal that may pass.
const RESEND_AFTER: Duration = Duration::from_secs(2);

/// Pause after a node accepted an order: its report may be lost.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Pause before a removal that was done is ordered once more, should it still be wanted.
const REPEAT_REMOVAL: Doubling = Doubling::new(Duration::from_secs(5), Duration::from_secs(120));

/// Progress of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Sent, and not answered yet.
    Sent,
    /// Journaled by the node: it will be done.
    Accepted,
    /// Not taken.
    Refused(Refusal),
    /// Not answered since that time.
    Unanswered { since: Now, silence: Silence },
    /// Done, with the node's result.
    Done(Outcome),
}

/// Why no answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The bus works; the node does not listen or does not answer.
    Node,
    /// This side is cut off from the bus, which says nothing about the node.
    Bus,
}

/// An order's progress, and the instance that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownOrder {
    /// The instance that the last sending named, or that the node says it was done to.
    pub target: ContainerId,
    pub progress: Progress,
}

/// All orders that this leader has sent.
#[derive(Clone, Debug, Default)]
pub struct OrderBook {
    entries: BTreeMap<OrderId, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    known: KnownOrder,
    attempt: u32,
    /// When it is sent again, if it is still wanted.
    due: Monotonic,
    /// Once a node has accepted, its later silence changes nothing.
    was_accepted: bool,
    /// Of the last report; an older one is stale.
    sequence: u32,
    /// When it was last done.
    done_at: Option<Monotonic>,
    /// How often it was done: a removal may be repeated.
    times_done: u32,
}

// === impl OrderBook ===

impl OrderBook {
    /// Returns the sending that is due now for a wanted order.
    ///
    /// Call it whenever the plan wants the order. The first call returns a sending; later ones do when a pause is over,
    /// or at once when a refused order names another instance now. A stop that was done is not sent again.
    pub fn send_due(&mut self, wanted: &Order, now: Monotonic) -> Option<Sending> {
        let target = &wanted.instance.container_id;
        let entry = self
            .entries
            .entry(wanted.id.clone())
            .or_insert_with(|| Entry::new(target.clone(), now));
        let is_retargeted =
            matches!(entry.known.progress, Progress::Refused(_)) && entry.known.target != *target;
        if entry.is_final(&wanted.id) || !(is_retargeted || entry.due <= now) {
            return None;
        }
        entry.attempt += 1;
        entry.known.target = target.clone();
        entry.due = now + ANSWER_WITHIN + RESEND_AFTER;
        Some(Sending {
            order: wanted.clone(),
            attempt: entry.attempt,
        })
    }

    /// Records the node's answer to one sending.
    pub fn on_answer(&mut self, order: &OrderId, answer: Answer, now: Monotonic) {
        let Some(entry) = self.entries.get_mut(order) else {
            return;
        };
        if entry.is_final(order) {
            return; // A late answer: the report was faster.
        }
        entry.due = now + RESEND_AFTER;
        match answer {
            // Sent | Unanswered | Refused => Accepted
            Answer::Accepted => {
                entry.was_accepted = true;
                entry.due = now + ASK_AGAIN_AFTER;
                entry.known.progress = Progress::Accepted;
            }
            // any => Refused
            Answer::Refused(refusal) => entry.known.progress = Progress::Refused(refusal),
            // any => Done
            Answer::Done {
                container_id,
                outcome,
            } => {
                entry.due = now + REPEAT_REMOVAL.pause(entry.times_done);
                entry.times_done = entry.times_done.saturating_add(1);
                entry.done_at = Some(now);
                if let Some(target) = container_id {
                    entry.known.target = target;
                }
                entry.known.progress = Progress::Done(outcome);
            }
        }
    }

    /// Records that one sending was not answered.
    pub fn on_silence(&mut self, order: &OrderId, silence: Silence, now: Now) {
        let Some(entry) = self.entries.get_mut(order) else {
            return;
        };
        entry.due = now.monotonic + RESEND_AFTER;
        if entry.was_accepted {
            return;
        }
        entry.known.progress = match &entry.known.progress {
            // Sent | Refused => Unanswered
            Progress::Sent | Progress::Refused(_) => Progress::Unanswered {
                since: now,
                silence,
            },
            // Unanswered => Unanswered, counted from the first silence of that kind
            Progress::Unanswered {
                since,
                silence: before,
            } => {
                let since = if *before == silence { *since } else { now };
                Progress::Unanswered { since, silence }
            }
            // Accepted => Accepted, Done => Done
            Progress::Accepted => Progress::Accepted,
            Progress::Done(outcome) => Progress::Done(outcome.clone()),
        };
    }

    /// Records a node's report. A stale one changes nothing; all may be acknowledged.
    pub fn on_report(&mut self, report: &Report, now: Monotonic) {
        let Some(entry) = self.entries.get_mut(&report.order) else {
            return;
        };
        if report.sequence > entry.sequence {
            entry.sequence = report.sequence;
            // any => Done
            entry.done_at = Some(now);
            entry.known.target = report.instance.container_id.clone();
            entry.known.progress = Progress::Done(report.outcome.clone());
        }
    }

    /// An order's progress; `None` if it was never sent.
    pub fn known(&self, order: &OrderId) -> Option<&KnownOrder> {
        Some(&self.entries.get(order)?.known)
    }

    /// When an order was last done.
    pub fn done_at(&self, order: &OrderId) -> Option<Monotonic> {
        self.entries.get(order)?.done_at
    }

    /// When an order that is still wanted may have to be sent again; `None` for a stop that is done.
    pub fn send_again_at(&self, order: &OrderId) -> Option<Monotonic> {
        let entry = self.entries.get(order)?;
        (!entry.is_final(order)).then_some(entry.due)
    }

    /// Removes an order whose object is gone or ended.
    pub fn forget(&mut self, order: &OrderId) {
        self.entries.remove(order);
    }

    /// How many orders are known.
    pub fn count(&self) -> usize {
        self.entries.len()
    }
}

// === impl Entry ===

impl Entry {
    fn new(target: ContainerId, now: Monotonic) -> Self {
        Self {
            known: KnownOrder {
                target,
                progress: Progress::Sent,
            },
            attempt: 0,
            due: now,
            was_accepted: false,
            sequence: 0,
            done_at: None,
            times_done: 0,
        }
    }

    /// True if the order is done and must not be sent again.
    fn is_final(&self, order: &OrderId) -> bool {
        let is_done = matches!(self.known.progress, Progress::Done(_));
        match order.task {
            Task::Stop => is_done,
            Task::RemoveDeadInstances => false,
        }
    }
}

#[cfg(test)]
mod tests;

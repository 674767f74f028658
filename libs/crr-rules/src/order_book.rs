//! Orders that were sent, and when to send them again.
//!
//! Owns the scheduler's only memory. All of it may be lost: an order's id is derived from the CRR, so the
//! next leader sends the same order and the node answers what it has journaled.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use model::{
    ids::{ContainerId, OrderId},
    order::{OrderAnswer, Refusal, StopOrder, StopOutcome, StopReport},
    pause::Pause,
};

use crate::KnownOrder;

/// How soon an order is sent again that got no answer, or a refusal that may pass.
pub const RESEND_AFTER: Duration = Duration::from_secs(2);

/// How soon an accepted order is sent again: its report may have been lost.
pub const ASK_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// How long the answer to one sending is waited for.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderProgress {
    /// On its way; no answer yet.
    Sent,
    /// Journaled by the node: it will be done.
    Accepted,
    /// Not taken.
    Refused(Refusal),
    /// No answer since that moment.
    Unanswered { since: Timestamp, silence: Silence },
    /// Done, with the node's journaled result.
    Done(StopOutcome),
}

/// Why no answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The bus works, the node does not listen or does not answer.
    Node,
    /// We are cut off from the bus: it says nothing about the node.
    Bus,
}

/// The orders of this leader.
#[derive(Clone, Debug, Default)]
pub struct OrderBook {
    entries: BTreeMap<OrderId, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    progress: OrderProgress,
    /// The instance that the last sending named, or that the node says it was done to.
    target: ContainerId,
    attempt: u32,
    /// Until it is sent again.
    pause: Pause,
    /// Once a node has accepted, its later silence does not unsay it.
    was_accepted: bool,
    /// Of the last report; an older one is stale.
    sequence: u32,
}

// === impl OrderBook ===

impl OrderBook {
    /// Says whether the wanted order is to be sent now, and as which attempt.
    ///
    /// Call it as often as the plan wants the order: it answers `Some` at the first call, again when a resend is due, and
    /// at once when a refused order names another instance now.
    pub fn send_due(&mut self, wanted: &StopOrder, now: Timestamp) -> Option<StopOrder> {
        let entry = self.entries.entry(wanted.id.clone()).or_insert(Entry {
            progress: OrderProgress::Sent,
            target: wanted.instance.container_id.clone(),
            attempt: 0,
            pause: Pause::new(now, Duration::ZERO),
            was_accepted: false,
            sequence: 0,
        });
        let is_done = matches!(entry.progress, OrderProgress::Done(_));
        let is_retargeted = matches!(entry.progress, OrderProgress::Refused(_))
            && entry.target != wanted.instance.container_id;
        if is_done || !(is_retargeted || entry.pause.is_over(now)) {
            return None;
        }
        entry.attempt += 1;
        entry.target = wanted.instance.container_id.clone();
        entry.pause = Pause::new(now, ANSWER_WITHIN + RESEND_AFTER);
        Some(StopOrder {
            attempt: entry.attempt,
            ..wanted.clone()
        })
    }

    /// Takes the node's answer to one sending.
    pub fn on_answer(&mut self, order: &OrderId, answer: OrderAnswer, now: Timestamp) {
        let Some(entry) = self.entries.get_mut(order) else {
            return;
        };
        if matches!(entry.progress, OrderProgress::Done(_)) {
            return; // A late answer: the report was faster.
        }
        entry.pause = Pause::new(now, RESEND_AFTER);
        entry.progress = match answer {
            // Sent | Unanswered | Refused => Accepted
            OrderAnswer::Accepted => {
                entry.was_accepted = true;
                entry.pause = Pause::new(now, ASK_AGAIN_AFTER);
                OrderProgress::Accepted
            }
            // any => Refused
            OrderAnswer::Refused(refusal) => OrderProgress::Refused(refusal),
            // any => Done
            OrderAnswer::Done {
                container_id,
                outcome,
            } => {
                entry.target = container_id;
                OrderProgress::Done(outcome)
            }
        };
    }

    /// Takes the absence of an answer to one sending.
    pub fn on_silence(&mut self, order: &OrderId, silence: Silence, now: Timestamp) {
        let Some(entry) = self.entries.get_mut(order) else {
            return;
        };
        entry.pause = Pause::new(now, RESEND_AFTER);
        if entry.was_accepted {
            return;
        }
        entry.progress = match &entry.progress {
            // Sent | Refused => Unanswered
            OrderProgress::Sent | OrderProgress::Refused(_) => OrderProgress::Unanswered {
                since: now,
                silence,
            },
            // Unanswered => Unanswered, counted from the first silence of that kind
            OrderProgress::Unanswered {
                since,
                silence: before,
            } => {
                let since = if *before == silence { *since } else { now };
                OrderProgress::Unanswered { since, silence }
            }
            // Accepted => Accepted, Done => Done
            OrderProgress::Accepted => OrderProgress::Accepted,
            OrderProgress::Done(outcome) => OrderProgress::Done(outcome.clone()),
        };
    }

    /// Takes a node's report. Stale ones change nothing; all may be acknowledged.
    pub fn on_report(&mut self, report: &StopReport) {
        let Some(entry) = self.entries.get_mut(&report.order) else {
            return;
        };
        if report.sequence > entry.sequence {
            entry.sequence = report.sequence;
            // any => Done
            entry.target = report.instance.container_id.clone();
            entry.progress = OrderProgress::Done(report.outcome.clone());
        }
    }

    /// What is known of an order, once it was sent.
    pub fn known(&self, order: &OrderId) -> Option<KnownOrder> {
        let entry = self.entries.get(order)?;
        Some(KnownOrder {
            target: entry.target.clone(),
            progress: entry.progress.clone(),
        })
    }

    /// When an order that is still wanted has to be looked at again.
    pub fn send_again_at(&self, order: &OrderId) -> Option<Timestamp> {
        let entry = self.entries.get(order)?;
        (!matches!(entry.progress, OrderProgress::Done(_))).then(|| entry.pause.ends_at())
    }

    /// Drops an order whose CRR is gone or ended.
    pub fn forget(&mut self, order: &OrderId) {
        self.entries.remove(order);
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests;

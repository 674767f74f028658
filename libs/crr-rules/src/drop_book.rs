//! Drops that were ordered: when to order one again, and which have been done.
//!
//! Owns that memory; all of it may be lost, a drop may be done as often as one likes.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use model::{
    ids::OrderId,
    order::{DropAnswer, DropOrder},
};

use crate::order_book::{ANSWER_WITHIN, RESEND_AFTER};

/// How soon a drop that was done is ordered again, should the container still be down.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, Default)]
pub struct DropBook {
    entries: BTreeMap<OrderId, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    attempt: u32,
    send_again_at: Timestamp,
    dropped_at: Option<Timestamp>,
}

// === impl DropBook ===

impl DropBook {
    /// Says whether the wanted drop is to be sent now, and as which attempt.
    pub fn send_due(&mut self, wanted: &DropOrder, now: Timestamp) -> Option<DropOrder> {
        let entry = self.entries.entry(wanted.id.clone()).or_insert(Entry {
            attempt: 0,
            send_again_at: now,
            dropped_at: None,
        });
        if now < entry.send_again_at {
            return None;
        }
        entry.attempt += 1;
        entry.send_again_at = now + ANSWER_WITHIN + RESEND_AFTER;
        Some(DropOrder {
            attempt: entry.attempt,
            ..wanted.clone()
        })
    }

    /// Takes the node's answer; `None` is silence.
    pub fn on_answer(&mut self, order: &OrderId, answer: Option<&DropAnswer>, now: Timestamp) {
        let Some(entry) = self.entries.get_mut(order) else {
            return;
        };
        match answer {
            Some(DropAnswer::Dropped { .. }) => {
                entry.dropped_at = Some(now);
                entry.send_again_at = now + AGAIN_AFTER;
            }
            // Most often the kubelet was faster: pod status will show it.
            Some(DropAnswer::Refused(_)) | None => entry.send_again_at = now + RESEND_AFTER,
        }
    }

    /// When the dead instances were last known to be gone.
    pub fn dropped_at(&self, order: &OrderId) -> Option<Timestamp> {
        self.entries.get(order)?.dropped_at
    }

    /// When a drop that is still wanted has to be looked at again.
    pub fn send_again_at(&self, order: &OrderId) -> Option<Timestamp> {
        Some(self.entries.get(order)?.send_again_at)
    }

    pub fn forget(&mut self, order: &OrderId) {
        self.entries.remove(order);
    }
}

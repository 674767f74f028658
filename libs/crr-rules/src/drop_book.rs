//! Drops that were ordered: when to order one again, and which have been done.
//!
//! Owns that memory; all of it may be lost, a drop may be done as often as one likes.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use model::{
    ids::OrderId,
    order::{DropAnswer, DropOrder},
    pause::Pause,
};

use crate::order_book::{ANSWER_WITHIN, RESEND_AFTER};

/// How soon a drop that was done is ordered again, should the container still be down; doubled each time.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

#[derive(Clone, Debug, Default)]
pub struct DropBook {
    entries: BTreeMap<OrderId, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    attempt: u32,
    /// Until it is sent again.
    pause: Pause,
    dropped_at: Option<Timestamp>,
    /// After the next drop that is done.
    next_length: Duration,
}

// === impl DropBook ===

impl DropBook {
    /// Says whether the wanted drop is to be sent now, and as which attempt.
    pub fn send_due(&mut self, wanted: &DropOrder, now: Timestamp) -> Option<DropOrder> {
        let entry = self.entries.entry(wanted.id.clone()).or_insert(Entry {
            attempt: 0,
            pause: Pause::new(now, Duration::ZERO),
            dropped_at: None,
            next_length: AGAIN_AFTER,
        });
        if !entry.pause.is_over(now) {
            return None;
        }
        entry.attempt += 1;
        entry.pause = Pause::new(now, ANSWER_WITHIN + RESEND_AFTER);
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
                entry.pause = Pause::new(now, entry.next_length);
                entry.next_length = (entry.next_length * 2).min(LONGEST_PAUSE);
            }
            // Most often the kubelet was faster: pod status will show it.
            Some(DropAnswer::Refused(_)) | None => entry.pause = Pause::new(now, RESEND_AFTER),
        }
    }

    /// When the dead instances were last known to be gone.
    pub fn dropped_at(&self, order: &OrderId) -> Option<Timestamp> {
        self.entries.get(order)?.dropped_at
    }

    /// When a drop that is still wanted has to be looked at again.
    pub fn send_again_at(&self, order: &OrderId) -> Option<Timestamp> {
        Some(self.entries.get(order)?.pause.ends_at())
    }

    pub fn forget(&mut self, order: &OrderId) {
        self.entries.remove(order);
    }
}

#[cfg(test)]
mod tests {
    use model::order::{Instance, Refusal};

    use super::*;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(milliseconds).unwrap()
    }

    fn wanted() -> DropOrder {
        DropOrder {
            id: "drop/1/app".into(),
            attempt: 0,
            instance: Instance {
                namespace: "shop".into(),
                pod: "web".into(),
                pod_uid: "uid".into(),
                container: "app".into(),
                container_id: "old".into(),
                restart_count: 1,
            },
            reason: "test".to_owned(),
        }
    }

    #[test]
    fn a_drop_that_was_done_is_ordered_again_less_and_less_often() {
        let mut book = DropBook::default();
        let id = wanted().id;
        let dropped = DropAnswer::Dropped { count: 1 };
        assert_eq!(book.send_due(&wanted(), at(0)).unwrap().attempt, 1);
        assert_eq!(book.send_due(&wanted(), at(10)), None);
        book.on_answer(&id, Some(&dropped), at(100));
        assert_eq!(book.dropped_at(&id), Some(at(100)));
        assert_eq!(book.send_again_at(&id), Some(at(5_100)));
        assert_eq!(book.send_due(&wanted(), at(5_100)).unwrap().attempt, 2);
        book.on_answer(&id, Some(&dropped), at(5_200));
        assert_eq!(book.send_again_at(&id), Some(at(15_200)));
    }

    #[test]
    fn a_clock_that_is_set_back_puts_no_drop_off() {
        let mut book = DropBook::default();
        let hour = 3_600_000;
        book.send_due(&wanted(), at(hour));
        book.on_answer(
            &wanted().id,
            Some(&DropAnswer::Dropped { count: 1 }),
            at(hour),
        );
        assert_eq!(book.send_due(&wanted(), at(0)).unwrap().attempt, 2);
        assert_eq!(book.send_due(&wanted(), at(1)), None);
    }

    #[test]
    fn a_refusal_and_silence_are_asked_again_soon() {
        let mut book = DropBook::default();
        let id = wanted().id;
        book.send_due(&wanted(), at(0));
        book.on_answer(&id, None, at(3_000));
        assert_eq!(book.send_again_at(&id), Some(at(5_000)));
        let unfinished = Refusal::StopUnfinished {
            order: "stop/1/app".into(),
        };
        for (answered_at, refusal) in [(6_000, Refusal::StillRunning), (9_000, unfinished)] {
            let refused = DropAnswer::Refused(refusal);
            book.on_answer(&id, Some(&refused), at(answered_at));
            assert_eq!(book.send_again_at(&id), Some(at(answered_at + 2_000)));
            assert_eq!(book.dropped_at(&id), None);
        }
    }
}

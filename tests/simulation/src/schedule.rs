//! The queue of what happens when, on virtual time.
//!
//! Owns the order only: by time, and among equal times by the order in which the actions were scheduled.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    time::Duration,
};

use crate::world::World;

type Action = Box<dyn FnOnce(&mut World)>;

/// Actions that have not happened yet.
#[derive(Default)]
pub(crate) struct Schedule {
    queue: BinaryHeap<Reverse<Scheduled>>,
    count: u64,
}

struct Scheduled {
    at: Duration,
    sequence: u64,
    action: Action,
}

// === impl Schedule ===

impl Schedule {
    pub(crate) fn add(&mut self, at: Duration, action: Action) {
        self.count += 1;
        let sequence = self.count;
        self.queue.push(Reverse(Scheduled {
            at,
            sequence,
            action,
        }));
    }

    /// Removes the next action and returns it with its time.
    pub(crate) fn next(&mut self) -> Option<(Duration, Action)> {
        let Reverse(scheduled) = self.queue.pop()?;
        Some((scheduled.at, scheduled.action))
    }
}

// === impl Scheduled ===

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scheduled {}

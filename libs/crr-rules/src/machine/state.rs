//! What the machine shows of itself at `/state` and as gauges.

use std::time::Duration;

use model::{
    crr::Crr,
    time::{Monotonic, Now},
};

use super::Machine;
use crate::entry::Request;

/// How many active CRRs are shown.
const SHOWN: usize = 50;

/// The sizes of the leader's memory, and some of its active CRRs.
#[derive(Clone, Debug)]
pub struct State<'a> {
    pub active: usize,
    pub some_active: Vec<ActiveCrr<'a>>,
    pub pods_watched: usize,
    pub orders_known: usize,
    pub nodes_seen: usize,
}

/// A CRR that has not ended.
#[derive(Clone, Copy, Debug)]
pub struct ActiveCrr<'a> {
    pub crr: &'a Crr,
    pub is_writing: bool,
    pub wake_in: Option<Duration>,
}

// === impl Machine ===

impl Machine {
    /// How many CRRs have not ended.
    pub fn active(&self) -> usize {
        self.crrs.unended().len()
    }

    /// True if nothing is known of any CRR.
    pub fn is_empty(&self) -> bool {
        self.crrs.keys().is_empty() && self.book.count() == 0 && self.pods.is_empty()
    }

    pub fn state(&self, now: Now) -> State<'_> {
        let active = self.crrs.unended().take(SHOWN);
        let active = active.filter_map(|key| self.crrs.get(key)).map(|entry| {
            let wake_at = self.wakes.get(&entry.crr.key);
            let until = |at: Monotonic| at - now.monotonic;
            ActiveCrr {
                crr: &entry.crr,
                is_writing: matches!(entry.request, Request::UnderWay { .. }),
                wake_in: wake_at.map(until),
            }
        });
        State {
            active: self.active(),
            some_active: active.collect(),
            pods_watched: self.pods.len(),
            orders_known: self.book.count(),
            nodes_seen: self.presence.count(),
        }
    }
}

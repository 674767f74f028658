//! Lookups over the accepted stops, so that no event walks over all that are remembered.
//!
//! Owns no state of its own: everything here follows from the stops. The machine removes a stop before it changes and adds
//! it again afterwards.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use model::{
    ids::ContainerId,
    order_id::OrderId,
    time::{Monotonic, Now, after},
};

use crate::stop::AcceptedStop;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) unfinished: BTreeSet<OrderId>,
    /// Finished stops whose report is not acknowledged.
    pub(crate) unacknowledged: BTreeSet<OrderId>,
    /// Instances that an order is working on; at most one order works on each.
    pub(crate) acting: BTreeSet<ContainerId>,
    /// Paused stops by the end of their pause.
    wakeups: BTreeSet<(Monotonic, OrderId)>,
    /// Acknowledged stops by their end, which outlives a restart and is therefore wall-clock time.
    acknowledged: BTreeSet<(Timestamp, OrderId)>,
}

// === impl Index ===

impl Index {
    pub(crate) fn add(&mut self, stop: &AcceptedStop) {
        let id = stop.id().clone();
        if stop.has_slot() {
            self.acting.insert(stop.instance().container_id.clone());
        }
        if let Some(wakeup) = stop.wakeup() {
            self.wakeups.insert((wakeup, id.clone()));
        }
        if let Some(finished_at) = stop.acknowledged_end() {
            self.acknowledged.insert((finished_at, id));
        } else if stop.is_finished() {
            self.unacknowledged.insert(id);
        } else {
            self.unfinished.insert(id);
        }
    }

    pub(crate) fn remove(&mut self, stop: &AcceptedStop) {
        let id = stop.id();
        self.unfinished.remove(id);
        self.unacknowledged.remove(id);
        if stop.has_slot() {
            self.acting.remove(&stop.instance().container_id);
        }
        if let Some(wakeup) = stop.wakeup() {
            self.wakeups.remove(&(wakeup, id.clone()));
        }
        if let Some(finished_at) = stop.acknowledged_end() {
            self.acknowledged.remove(&(finished_at, id.clone()));
        }
    }

    /// A stop whose pause is over.
    pub(crate) fn due(&self, now: Monotonic) -> Option<OrderId> {
        let (wakeup, id) = self.wakeups.first()?;
        (*wakeup <= now).then(|| id.clone())
    }

    /// An acknowledged stop whose retention is over.
    pub(crate) fn expired(&self, retention: Duration, now: Timestamp) -> Option<OrderId> {
        let (finished_at, id) = self.acknowledged.first()?;
        (after(*finished_at, retention) <= now).then(|| id.clone())
    }

    /// When the next pause or retention is over.
    pub(crate) fn next_deadline(&self, retention: Duration, now: Now) -> Option<Monotonic> {
        let wakeup = self.wakeups.first().map(|(wakeup, _)| *wakeup);
        let oldest = self.acknowledged.first();
        let expiry = oldest.map(|(end, _)| now.moment_of(after(*end, retention)));
        wakeup.into_iter().chain(expiry).min()
    }
}

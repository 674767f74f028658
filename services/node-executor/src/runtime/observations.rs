//! Container observations for the task that publishes starts.
//!
//! Owns their queue. A subscriber that falls behind gets the present list of containers, so that it misses states between
//! two updates but never the last one.

use cri::Observation;
use tokio::sync::mpsc::{self, error::TrySendError};

/// Updates that a subscriber may be behind.
const CAPACITY: usize = 1024;

/// All containers that the runtime has, or the one that has changed.
pub(crate) type Update = Vec<Observation>;

/// The sending end of the queue.
pub(crate) struct Updates(mpsc::Sender<Update>);

// === impl Updates ===

impl Updates {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Update>) {
        let (tx, updates) = mpsc::channel(CAPACITY);
        (Self(tx), updates)
    }

    /// Sends a list; waits for a subscriber that is behind.
    pub(crate) async fn send_list(&self, observations: Vec<Observation>) {
        // The subscriber ends only when the process does.
        let _ended = self.0.send(observations).await;
    }

    /// Sends a change. Returns false if the subscriber is behind and missed it, so that a list is due.
    #[must_use]
    pub(crate) fn send_change(&self, observation: Observation) -> bool {
        let sent = self.0.try_send(vec![observation]);
        !matches!(sent, Err(TrySendError::Full(_)))
    }
}

#[cfg(test)]
mod tests;

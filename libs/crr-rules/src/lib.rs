//! What a ContainerRecreateRequest needs next.
//!
//! Owns every decision of the crr-scheduler: [`plan`] from what is observed, [`order_book`] and [`DropBook`] for what
//! was ordered and not answered. Pure: time is an argument, and nothing is remembered but the books.

#![warn(clippy::wildcard_enum_match_arm)]

mod back_off;
mod conditions;
mod container;
mod drop_book;
mod events;
pub mod order_book;
mod plan;
mod snapshot;
mod unready;

pub use drop_book::DropBook;
pub use events::{About, CrrEvent};
pub use order_book::{OrderBook, OrderProgress, Silence};
pub use plan::{GateWrite, Plan, Write, plan};
pub use snapshot::{KnownOrder, PodView, Seen, Snapshot, Turn};

use std::time::Duration;

/// A node that answers no order for this long before it ever accepted one ends the CRR (OpenKruise: 60 s).
pub const NODE_SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// A node that is silent for this long is named in the CRR's status.
pub const NODE_SILENCE_SHOWN: Duration = Duration::from_secs(5);

/// States that change sooner than this after the last write wait for the next one: a recreate that is
/// over within it costs one status write at its start and one at its end.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(3);

/// So many requests at work make progress be written half as often.
const FEW_REQUESTS: u32 = 16;

/// How often progress is written while so many requests are at work: a burst is to cost the API server no more for each
/// than one alone, and it is over before anybody has read them all.
pub fn progress_interval(active: usize) -> Duration {
    let active = u32::try_from(active).unwrap_or(u32::MAX);
    PROGRESS_INTERVAL.saturating_mul(1 + active / FEW_REQUESTS)
}

/// The grace where neither the CRR nor the pod names one (Kubernetes' default).
pub const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// `status.message` texts that OpenKruise's users match on.
pub mod messages {
    pub const POD_GONE: &str = "pod has gone";
    pub const NODE_SILENT: &str = "daemon has not responded for a long time";
    pub const DEADLINE: &str = "recreating has exceeded the activeDeadlineSeconds";
    pub const NOT_ADMITTED: &str =
        "the request lacks the labels that admission writes: is the webhook installed?";

    /// Of a CRR that waits for its turn.
    pub(crate) fn waiting_for(other: &model::ids::CrrName) -> String {
        format!("waiting for ContainerRecreateRequest {other} of the same pod")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_written_less_often_in_a_burst() {
        let seconds = [0, 1, 15, 16, 200].map(|active| progress_interval(active).as_secs());
        assert_eq!(seconds, [3, 3, 3, 6, 39]);
        assert!(progress_interval(usize::MAX) > Duration::from_secs(1 << 29));
    }
}

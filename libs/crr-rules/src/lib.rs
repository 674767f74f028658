//! What a ContainerRecreateRequest needs next.
//!
//! Owns every decision of the crr-scheduler: [`plan`] from what is observed, [`order_book`] for what was
//! ordered and not answered. Pure: time is an argument, and nothing is remembered but the order book.

#![warn(clippy::wildcard_enum_match_arm)]

mod container;
pub mod order_book;
mod plan;
mod snapshot;

pub use order_book::{OrderBook, OrderProgress, Silence};
pub use plan::{Plan, plan};
pub use snapshot::{KnownOrder, PodView, SeenRunning, Snapshot, Turn};

use std::time::Duration;

/// A node that answers no order for this long before it ever accepted one ends the CRR (OpenKruise: 60 s).
pub const NODE_SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// A node that is silent for this long is named in the CRR's status.
pub const NODE_SILENCE_SHOWN: Duration = Duration::from_secs(5);

/// States that change sooner than this after the last write wait for the next one: a recreate that is
/// over within it costs one status write at its start and one at its end.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(3);

/// The grace where neither the CRR nor the pod names one (Kubernetes' default).
pub const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// `status.message` texts that OpenKruise's users match on.
pub mod messages {
    pub const POD_GONE: &str = "pod has gone";
    pub const NODE_SILENT: &str = "daemon has not responded for a long time";
    pub const DEADLINE: &str = "recreating has exceeded the activeDeadlineSeconds";
    pub const NOT_ADMITTED: &str =
        "the request lacks the labels that admission writes: is the webhook installed?";
}

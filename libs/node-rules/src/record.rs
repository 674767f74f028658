//! What the journal holds of each order: enough to finish it after a crash.
//!
//! Owns the words. Where and how they are stored is the driver's.

use jiff::Timestamp;
use model::order::{StopOrder, StopOutcome};
use serde::{Deserialize, Serialize};

/// One journaled order. It is stored before anything that depends on it leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub order: StopOrder,
    /// W3C `traceparent` of the order, so that its trace outlives a crash.
    pub trace_parent: Option<String>,
    /// Orders that wait are begun in this order after a restart.
    pub accepted_at: Timestamp,
    pub stage: Stage,
}

/// How far an order has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Accepted; nothing was done to the container yet.
    Queued,
    /// The hook may be running, or, without a hook to run, the stop may have been sent.
    Begun {
        /// When the grace ends by the wall clock; it goes on while the process is down.
        grace_ends: Timestamp,
    },
    /// The hook has ended and must never run again; the stop may have been sent.
    HookDone {
        grace_ends: Timestamp,
        hook_error: Option<String>,
    },
    /// Nothing more will be done to the container.
    Finished {
        outcome: StopOutcome,
        finished_at: Timestamp,
        /// The number that the report of this outcome bears each time it is sent.
        sequence: u32,
        /// Whether a leader has acknowledged that report.
        is_acknowledged: bool,
    },
}

// === impl Record ===

impl Record {
    /// Whether the container may already have been told to stop: what was found ended was then ended by us.
    pub(crate) fn may_have_stopped(&self) -> bool {
        match self.stage {
            Stage::Queued => false,
            Stage::Begun { .. } => !self.has_hook(),
            Stage::HookDone { .. } | Stage::Finished { .. } => true,
        }
    }

    /// Whether there is a hook to run: without grace there is none (as in the kubelet).
    pub(crate) fn has_hook(&self) -> bool {
        self.order.pre_stop.is_some() && !self.order.grace.is_zero()
    }

    pub(crate) fn hook_error(&self) -> Option<String> {
        match &self.stage {
            Stage::HookDone { hook_error, .. } => hook_error.clone(),
            Stage::Queued | Stage::Begun { .. } | Stage::Finished { .. } => None,
        }
    }
}

//! The journaled part of an accepted stop, enough to finish it after a crash.
//!
//! Owns the record and its JSON form, whose names are those of version 0.1. An older version must be able to read the records that this one writes, so that an
//! update can be rolled back. Where the JSON is stored is decided by the node-executor.

use jiff::Timestamp;
use model::{
    order::{Instance, Outcome, PreStop, Stop},
    order_id::OrderId,
};
use serde::{Deserialize, Serialize};

/// One journaled stop. It is stored before anything that depends on it leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub order: StopOrder,
    /// W3C `traceparent` of the order, so that its trace outlives a crash.
    #[serde(rename = "trace_parent")]
    pub traceparent: Option<String>,
    /// Waiting orders are begun in this order after a restart.
    pub accepted_at: Timestamp,
    pub stage: Stage,
}

/// An order with the verb stop. Only stops are journaled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopOrder {
    pub id: OrderId,
    /// The highest attempt received.
    pub attempt: u32,
    pub instance: Instance,
    /// The object that asks for it, for logs.
    pub reason: String,
    #[serde(flatten)]
    pub stop: Stop,
}

/// How far a stop has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Accepted; nothing was done to the instance.
    Queued,
    /// The hook may be running, or, without a hook to run, the stop may have been sent.
    Begun {
        /// End of the grace on the wall clock; it is not prolonged by the downtime of the process.
        grace_ends: Timestamp,
    },
    /// The hook has ended and must never run again; the stop may have been sent.
    HookDone {
        grace_ends: Timestamp,
        hook_error: Option<String>,
    },
    /// Nothing more will be done to the instance.
    Finished {
        outcome: Outcome,
        finished_at: Timestamp,
        /// The sequence number of this outcome's report, the same each time it is sent.
        sequence: u32,
        /// True if a leader has acknowledged that report.
        is_acknowledged: bool,
    },
}

// === impl StopOrder ===

impl StopOrder {
    /// The hook to run. Without grace there is none, as in the kubelet.
    pub(crate) fn hook(&self) -> Option<&PreStop> {
        let has_grace = !self.stop.grace.is_zero();
        self.stop.pre_stop.as_ref().filter(|_| has_grace)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Written by version 0.1, one record per stage.
    const RECORDED: &str = include_str!("record/recorded.jsonl");

    #[test]
    fn the_journal_of_an_older_version_is_read_and_written_back_the_same() {
        assert_eq!(RECORDED.lines().count(), 4);
        for line in RECORDED.lines() {
            let record: Record = serde_json::from_str(line).unwrap();
            let recorded: Value = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_value(record).unwrap(), recorded);
        }
    }
}

//! The machine's input.
//!
//! Owns the events. The caller makes the events: exactly one for each action that names one.

use model::{
    instances::{ListedInstance, Observed},
    order::Sending,
    order_id::OrderId,
};

use crate::record::Record;

/// An input of the machine. An event of an unknown order, or one that the order does not wait for, changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "one event lives at a time")]
pub enum Event {
    /// The process has started and read its journal. The first event of all.
    Recovered { records: Vec<Record> },
    /// An order arrived, for the first time or again.
    Ordered {
        sending: Sending,
        /// W3C `traceparent` that came with it.
        traceparent: Option<String>,
        reply: ReplyToken,
    },
    /// Result of `Action::Inspect`.
    Inspected { order: OrderId, observed: Observed },
    /// Result of `Action::RunHook`: the hook has ended or was cut off.
    HookEnded { order: OrderId, result: HookResult },
    /// Result of `Action::Stop`.
    StopEnded { order: OrderId, result: StopResult },
    /// Result of `Action::ListInstances`: all instances of the container, or why the runtime did not answer.
    InstancesListed {
        order: OrderId,
        listed: Result<Vec<ListedInstance>, String>,
    },
    /// Result of `Action::RemoveInstances`: how many were removed, or why the runtime did not answer.
    RemovalEnded {
        order: OrderId,
        result: Result<u32, String>,
    },
    /// Result of `Action::Report`: a leader acknowledged it.
    ReportAcknowledged { order: OrderId, sequence: u32 },
    /// Result of `Action::Report`: no leader acknowledged it.
    ReportFailed { order: OrderId, sequence: u32 },
    /// The process is about to end: nothing new is begun, accepted orders stay in the journal.
    DrainBegun,
    /// The deadline of `Machine::next_deadline` has passed.
    Tick,
}

/// Identifies one requester that waits for an answer. Each is answered once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplyToken(pub u64);

/// How a hook ended; `CutOff`: at its time limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookResult {
    Succeeded,
    Failed { message: String },
    CutOff,
}

/// The runtime's answer to a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopResult {
    /// It confirms that the instance is stopped.
    Stopped,
    /// It knows no such instance.
    NotFound,
    /// It answered with an error, or not within the time a stop may take.
    Failed { message: String },
    /// The connection was lost: the instance may or may not be stopped.
    Unavailable { message: String },
}

// === impl Event ===

impl Event {
    pub fn order(&self) -> Option<&OrderId> {
        match self {
            Self::Ordered { sending, .. } => Some(&sending.order.id),
            Self::Inspected { order, .. }
            | Self::HookEnded { order, .. }
            | Self::StopEnded { order, .. }
            | Self::InstancesListed { order, .. }
            | Self::RemovalEnded { order, .. }
            | Self::ReportAcknowledged { order, .. }
            | Self::ReportFailed { order, .. } => Some(order),
            Self::Recovered { .. } | Self::DrainBegun | Self::Tick => None,
        }
    }
}

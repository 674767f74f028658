//! Everything that may happen to the machine.
//!
//! Owns the words. The driver makes the events; it owes one answer to each effect that asks for one.

use model::{
    ids::{ContainerId, OrderId},
    order::StopOrder,
};

use crate::Record;

/// Something that happened. Events of an unknown order, or that nobody waits for, change nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "one event lives at a time")]
pub enum Event {
    /// The process has started and read its journal; the first event of all.
    Recovered { records: Vec<Record> },
    /// An order came, for the first time or again.
    Ordered {
        order: StopOrder,
        /// W3C `traceparent` that came with it.
        trace_parent: Option<String>,
        reply: ReplyToken,
    },
    /// The runtime was asked about an order's container: the answer to `Effect::Inspect`.
    Inspected { order: OrderId, observed: Observed },
    /// The hook has ended or was cut off: the answer to `Effect::RunHook`.
    HookEnded { order: OrderId, result: HookResult },
    /// The runtime has answered the stop: the answer to `Effect::Stop`.
    StopEnded { order: OrderId, result: StopResult },
    /// A leader has the report: an answer to `Effect::Report`.
    ReportAcknowledged { order: OrderId, sequence: u32 },
    /// No leader has answered the report: the other answer to `Effect::Report`.
    ReportFailed { order: OrderId, sequence: u32 },
    /// The process is about to end: nothing new is begun, accepted orders stay in the journal.
    DrainBegun,
    /// The moment that `Machine::next_deadline` named has come.
    Tick,
}

// === impl Event ===

impl Event {
    /// The order that the event is about.
    pub fn order(&self) -> Option<&OrderId> {
        match self {
            Self::Ordered { order, .. } => Some(&order.id),
            Self::Inspected { order, .. }
            | Self::HookEnded { order, .. }
            | Self::StopEnded { order, .. }
            | Self::ReportAcknowledged { order, .. }
            | Self::ReportFailed { order, .. } => Some(order),
            Self::Recovered { .. } | Self::DrainBegun | Self::Tick => None,
        }
    }
}

/// Names one waiting asker; every token is answered exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplyToken(pub u64);

/// What the runtime says of an order's pod and container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// It knows no sandbox of that pod uid.
    NoPod,
    /// It knows the pod, but no instance of that container name.
    NoContainer,
    /// The newest instance of that container name.
    Newest {
        container_id: ContainerId,
        restart_count: u32,
        state: InstanceState,
    },
    /// It did not answer, or not with sense.
    Unavailable { message: String },
}

/// As much of CRI's container state as a stop needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// Created, running, or of a state that the runtime does not know.
    Alive,
    Exited,
}

/// How a hook ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookResult {
    Succeeded,
    Failed {
        message: String,
    },
    /// Cut off at its deadline.
    CutOff,
}

/// How the runtime answered a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopResult {
    /// It confirms that the instance is stopped.
    Stopped,
    /// It knows no such instance.
    NotFound,
    /// It answered with an error, or not within the time a stop may take.
    Failed { message: String },
    /// It went away: whether the instance is stopped is not known.
    Unavailable { message: String },
}

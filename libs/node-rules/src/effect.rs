//! Everything the machine may want done.
//!
//! Owns the words. Each effect is idempotent: doing it twice, or for an order that went on, harms nothing.

use std::time::Duration;

use jiff::Timestamp;
use model::{
    ids::{ContainerId, OrderId},
    order::{Instance, OrderAnswer, PreStop, StopReport},
};

use crate::{Record, ReplyToken};

/// Something to do, in the order of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Make the record durable before any later effect leaves; if that fails, end the process.
    Store(Record),
    /// Delete the record of an order; nothing waits for it.
    Forget(OrderId),
    /// Answer an asker.
    Answer {
        reply: ReplyToken,
        answer: OrderAnswer,
    },
    /// Ask the runtime for the newest instance of the container; `Event::Inspected` answers.
    Inspect { order: OrderId, instance: Instance },
    /// Run the hook, and cut it off at the deadline; `Event::HookEnded` answers.
    RunHook {
        order: OrderId,
        instance: Instance,
        hook: PreStop,
        deadline: Timestamp,
    },
    /// Have the runtime stop that very instance; `Event::StopEnded` answers.
    Stop {
        order: OrderId,
        container_id: ContainerId,
        /// How long the runtime waits before it kills.
        timeout: Duration,
    },
    /// Send a report to the leaders; `Event::ReportAcknowledged` or `Event::ReportFailed` answers.
    Report(StopReport),
}

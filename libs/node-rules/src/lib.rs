//! What a node does with an order, and after a crash.
//!
//! Owns every decision of the node-executor about stops: [`Event`] is what may happen, [`Effect`] what is
//! done about it, [`Record`] what survives a crash, and [`Machine`] turns the first into the second.
//! It does no IO and reads no clock: the driver in `services/node-executor` does both.

mod drop;
mod effect;
mod event;
mod machine;
mod record;

pub use drop::{ListedInstance, UnfinishedStop, judge_drop, logs_to_remove};
pub use effect::Effect;
pub use event::{Event, HookResult, InstanceState, Observed, ReplyToken, StopResult};
pub use machine::{Machine, Settings};
pub use record::{Record, Stage};

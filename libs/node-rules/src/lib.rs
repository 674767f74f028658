//! The node's side of orders: stops of container instances and removals of dead ones, also across crashes.
//!
//! Owns every decision of the node-executor about orders: [`Event`] is the input of [`Machine`], [`Effects`] its output,
//! and [`Record`] the journaled part of its state. It does no IO and reads no clock: `services/node-executor` does both.
//! The rules are those of docs/protocol.md, section "Orders".

#![warn(clippy::wildcard_enum_match_arm)]

mod effect;
mod event;
mod machine;
mod record;
mod settings;

mod admission;
mod index;
mod logs;
mod removal;
mod stop;

pub use effect::{Action, Effects};
pub use event::{Event, HookResult, ReplyToken, StopResult};
pub use logs::logs_to_remove;
pub use machine::Machine;
pub use model::instances::{InstanceState, ListedInstance, Observed};
pub use record::{Record, Stage, StopOrder};
pub use settings::Settings;

//! The decisions of the crr-scheduler: what each ContainerRecreateRequest (CRR) needs next.
//!
//! Owns the leader's memory and every decision: [`Machine`] takes an [`Event`] and returns [`Effect`]s. Inside, [`plan`]
//! decides for one CRR from what is observed. Pure: time is an argument.

#![warn(clippy::wildcard_enum_match_arm)]

mod back_off;
mod conditions;
mod container;
mod effect;
mod entry;
mod event;
mod index;
mod kubernetes_events;
mod limits;
mod machine;
pub mod messages;
mod plan;
mod presence;
mod snapshot;
mod unready;
mod write;

pub use effect::Effect;
pub use event::{Event, ReplyToken, WriteResult};
pub use kubernetes_events::{About, CrrEvent};
pub use machine::{ActiveCrr, Machine, State};
pub use plan::{Plan, plan};
pub use snapshot::{PodView, Seen, Snapshot, Turn};
pub use unready::open_new_gate;
pub use write::{GateWrite, Write};

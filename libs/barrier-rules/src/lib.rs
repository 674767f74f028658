//! Rules of the ordered launch of pods: the barrier-manager's memory and all its decisions.
//!
//! Owns the [`Machine`], which turns each [`Event`] into [`Effect`]s, and the planner that it calls for one pod, [`plan`].
//! Pure: time is an argument. The pod and its ConfigMap are the only store: a machine that starts without memory
//! continues every launch (docs/adr/0007).

#![warn(clippy::wildcard_enum_match_arm)]

mod container;
mod effect;
mod event;
mod machine;
mod messages;
mod plan;
mod snapshot;

pub use container::Waiting;
pub use effect::{Action, Effect, Write};
pub use event::{Event, FetchResult, WriteResult};
pub use machine::{LaunchState, Machine, State};
pub use messages::{LaunchEvent, blocked};
pub use plan::{Plan, Stage, plan, stage};
pub use snapshot::{CurrentLevel, MapPoll, MapView, Snapshot};

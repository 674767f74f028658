//! What the ordered launch of a pod needs next.
//!
//! Owns every decision of the barrier-manager: [`plan`] from what is observed. Pure: time is an argument, and what was
//! done before is read from the pod and its ConfigMap, so that a manager that lost its memory goes on as if nothing
//! had happened (docs/adr/0007).

#![warn(clippy::wildcard_enum_match_arm)]

mod container;
mod events;
mod plan;
mod snapshot;

pub use container::Waiting;
pub use events::{LaunchEvent, refused};
pub use plan::{Plan, Stage, Write, may_start, plan};
pub use snapshot::{CurrentLevel, Looked, MapView, Snapshot};

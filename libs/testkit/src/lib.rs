//! Builders for tests: times, pods, requests and orders that differ from a plain one by one word.
//!
//! Owns the plain ones: pod `shop/web` on `node-1` with containers, request `shop/restart` for it. Only tests use it.

mod crr;
mod launch;
mod order;
mod pod;
mod time;

pub use crr::{CrrBuilder, crr};
pub use launch::{LaunchPodBuilder, barrier_map, launch_pod, priorities};
pub use order::{instance, removal, removal_id, report, stop, stop_id};
pub use pod::{PodBuilder, container, pod, web};
pub use time::{at, monotonic, wall};

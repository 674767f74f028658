//! The rules crates together on a virtual clock, with everything going wrong that may.
//!
//! Owns a small world: an API server, a kubelet, a runtime, a bus that loses, repeats, delays and reorders,
//! and a scheduler and an executor that crash before and after every effect. One seed is one history; the
//! rules under test are the real `crr-rules` and `node-rules`.

mod executor;
mod pod;
mod scheduler;
mod world;

pub use world::{Outcome, Plant, Violation, run};

//! How every service boots, is watched and ends.
//!
//! Owns argument groups, logging, traces, the admin port, shutdown, the clock, back-off and moments to wake at.
//! It knows no rule and no outside system of the product: neither Kubernetes, nor NATS, nor CRI.

mod admin;
mod args;
pub mod backoff;
mod boot;
pub mod clock;
mod shutdown;
mod tasks;
mod telemetry;
pub mod trace;
mod wakes;

pub use admin::{Admin, Readiness, StateCell};
pub use args::{HasKitArgs, KitArgs, LogFormat};
pub use boot::{Kit, main};
pub use shutdown::Shutdown;
pub use tasks::Tasks;
pub use wakes::{WakeSet, instant_of};

//! Start, observability and shutdown of every service.
//!
//! Owns argument groups, logs, traces, the admin port, the clock, back-off and wake-up times. It knows no rule of the
//! product and no outside system: neither Kubernetes, nor NATS, nor CRI.

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

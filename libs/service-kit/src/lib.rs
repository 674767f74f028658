//! Start, observability and shutdown of every service.
//!
//! Owns argument groups, logs, traces, the admin port, the clock and back-off. It knows no rule of the
//! product and no outside system: neither Kubernetes, nor NATS, nor CRI.

mod admin;
mod args;
pub mod backoff;
mod boot;
pub mod clock;
pub mod metrics;
mod shutdown;
mod tasks;
mod telemetry;
pub mod trace;

pub use admin::{Admin, Readiness, StateCell};
pub use args::{HasKitArgs, KitArgs, LogFormat};
pub use boot::{Kit, main};
pub use clock::Clock;
pub use shutdown::Shutdown;
pub use tasks::Tasks;

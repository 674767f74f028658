//! Brings every ContainerRecreateRequest to its end.
//!
//! Owns the loop around `crr-rules`: wait, decide, act, report. It decides nothing itself, touches no container, and only
//! the leader among its replicas works.

mod args;
mod cluster;
mod effects;
mod metrics;
mod readiness_gates;
mod run;
mod scheduler;

pub use args::Args;
pub use run::run;

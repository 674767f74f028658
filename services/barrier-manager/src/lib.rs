//! Opens the launch barriers of pods, level by level.
//!
//! Owns the loop of wait, decide, act, report around `barrier-rules`. It decides nothing itself, sees no pod without our
//! label, and only the leader of its replicas works.

mod args;
mod cluster;
mod driver;
mod metrics;
mod run;
mod tracked;

pub use args::Args;
pub use run::run;

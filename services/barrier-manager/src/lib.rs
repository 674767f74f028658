//! Opens the launch barriers of pods, level by level.
//!
//! Owns the loop around `barrier-rules`, which holds the memory and all decisions. Only the leader of the replicas works.

mod args;
mod cluster;
mod effects;
mod manager;
mod metrics;
mod observe;
mod run;

pub use args::Args;
pub use run::run;

//! Brings every ContainerRecreateRequest to its end.
//!
//! Owns the loop of wait, decide, store, act, report around `crr-rules`. It decides nothing itself, touches
//! no container, and only the leader of its replicas works.

mod args;
mod cluster;
mod crrs;
mod driver;
mod gates;
mod metrics;
mod presence;
mod run;
mod tracked;

pub use args::Args;
pub use run::run;

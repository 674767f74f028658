//! Carries orders out on one node: stops containers through the runtime, with a journal that outlives crashes.
//!
//! Owns the loop around `node-rules`: wait, decide, store, act, report. It holds no Kubernetes credential:
//! it talks to the bus, to the runtime's CRI socket and to its own journal.

mod args;
mod cri;
mod driver;
mod drops;
mod health;
mod hooks;
mod metrics;
mod orders;
mod outside;
mod presence;
mod run;
mod socket;
mod starts;
mod store;
mod unfinished;

pub use args::Args;
pub use run::run;

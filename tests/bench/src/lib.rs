//! Benchmarks on a real cluster: how long a recreation takes, what it asks of the API server, what it weighs.
//!
//! Owns measuring and the figures' form. Every figure says by whose clock it was taken.

mod args;
mod audit;
mod bare;
mod figures;
mod goals;
mod launch;
mod many;
mod measured;
mod memory;
mod pods;
mod report;
mod run;
mod sample;
mod seen;
mod watch;

pub use run::run;

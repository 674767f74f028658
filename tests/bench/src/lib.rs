//! Benchmarks on a real cluster: how long a recreation takes, what it asks of the API server, what it weighs.
//!
//! Owns measuring and the figures' form. Every figure says by whose clock it was taken.

mod args;
mod audit;
mod figures;
mod memory;
mod report;
mod run;
mod sample;

pub use run::run;

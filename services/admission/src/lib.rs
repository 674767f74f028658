//! Answers the API server's reviews of ContainerRecreateRequests.
//!
//! Owns the webhook's HTTPS port, its certificates, the bus's, and the reads that a review needs. What may pass is
//! `admission-rules`'. It keeps no state of its own: any replica answers any review.

mod api;
mod args;
mod certificates;
mod cluster;
mod keeper;
mod metrics;
mod run;
mod shared;

pub use args::Args;
pub use run::run;

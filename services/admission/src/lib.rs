//! Answers the API server's reviews of ContainerRecreateRequests and of pods, and converts requests.
//!
//! Owns the webhook's HTTPS port, its certificates, the bus's, and the reads that a review needs. What may pass is
//! `admission-rules`', what a request is in another version `k8s-api`'s. It keeps no state of its own: any replica
//! answers any review.

mod api;
mod args;
mod certificates;
mod cluster;
mod conversion;
mod definition;
mod keeper;
mod metrics;
mod run;
mod shared;

pub use args::Args;
pub use run::run;

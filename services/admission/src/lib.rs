//! The webhooks that review ContainerRecreateRequests (CRRs) and pods, and convert CRRs.
//!
//! Owns the HTTPS port, its certificates and those of the bus, and the reads for a review. `admission-rules` decides
//! reviews, `k8s-api` converts CRRs. The service has no state: any replica answers any review.

mod api;
mod args;
mod ca_bundle;
mod call_error;
mod certificate_secret;
mod certificates;
mod cluster;
mod conversion;
mod keeper;
mod metrics;
mod run;

pub use args::Args;
pub use run::run;

//! One leader among the replicas of a service, by a Kubernetes Lease.
//!
//! Owns taking, keeping, losing and releasing the Lease `coordination.k8s.io/v1` like client-go's electors, so that
//! `kubectl get lease` reads as usual, and the tasks that every such service has. The work of a leader is its
//! service's. ADR 0002 (there `libs/lease`).

mod args;
mod claim;
mod elector;
mod leadership;
mod serve;

pub use args::Args;
pub use claim::{Claim, Step, Timing};
pub use elector::Elector;
pub use leadership::Leadership;
pub use serve::serve;

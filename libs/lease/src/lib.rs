//! One leader among replicas, by a Kubernetes Lease.
//!
//! Owns taking, keeping, losing and releasing the Lease `coordination.k8s.io/v1`, as client-go's electors do
//! it, so that `kubectl get lease` reads as usual. What a leader does is not known here. ADR 0002.

mod claim;
mod elector;
mod leadership;

pub use claim::{Claim, Step, Timing};
pub use elector::{Elector, LeaseError};
pub use leadership::Leadership;

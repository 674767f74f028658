//! Kubernetes objects: our CRD, and the way from objects to model types and back.
//!
//! Owns the spelling of `apps.kruise.io` and what of a pod is read. It makes no request.

pub mod convert;
pub mod crd;
pub mod versions;

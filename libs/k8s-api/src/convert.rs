//! Objects as the API server sends them, to model types and back.
//!
//! Owns every reading of a field. A field that cannot be read is an error that names it.

mod crr;
mod launch;
mod pod;

pub use crr::{InvalidCrr, crr_from_object, crr_key, status_json};
pub use launch::{InvalidLaunch, barrier_map_from_object, launch_pod_from_object};
pub use pod::{InvalidPod, is_native_sidecar, pod_from_object};

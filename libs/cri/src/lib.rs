//! The container runtime, by CRI v1 over its unix socket.
//!
//! Owns the only use of `k8s-cri`: the socket, the calls, the event stream, and plain types for its events.
//! It decides nothing, retries nothing and knows neither Kubernetes nor the rules.

mod client;
mod error;
mod events;
mod socket;

pub use client::{Cri, ExecOutput};
pub use error::CriError;
pub use events::{ContainerEvents, ContainerState, Observation};
pub use socket::{NoSocket, SocketCandidates};

//! The container runtime's view of a container's instances.
//!
//! Owns the types that `cri` reads and `node-rules` judges.

use crate::ids::ContainerId;

/// The runtime's view of an order's pod and container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// No sandbox has that pod uid.
    NoPod,
    /// The pod has no instance of that container name.
    NoContainer,
    /// The newest instance of that container name.
    Newest(ListedInstance),
    /// It did not answer, or the answer was unusable.
    Unavailable { message: String },
}

/// One instance of a container as the runtime lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedInstance {
    pub container_id: ContainerId,
    pub restart_count: u32,
    /// Nanoseconds since the epoch, as in CRI.
    pub created_at: i64,
    pub state: InstanceState,
}

/// CRI's container state, as far as orders depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// Created, running, or in a state that the runtime does not know.
    Alive,
    Exited,
}

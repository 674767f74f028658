//! What a node says of itself every ten seconds, and what is known of it by others.

use std::time::Duration;

use crate::ids::{BootId, CrrName, NodeName, PodKey};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    pub node: NodeName,
    pub boot_id: BootId,
    /// The node-executor's version.
    pub version: String,
    /// The container runtime, as CRI `Version` names it; `None` while it does not answer.
    pub runtime: Option<Runtime>,
    /// Orders accepted and not finished.
    pub orders_held: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    pub name: String,
    pub version: String,
}

/// What admission asks the leader about a request that is being created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresenceQuestion {
    /// When was it last seen?
    pub node: NodeName,
    /// Which of its CRRs have not ended?
    pub pod: Option<PodKey>,
}

/// The leader's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresenceAnswer {
    pub last_seen: LastSeen,
    /// Oldest first.
    pub active_crrs: Vec<CrrName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastSeen {
    /// That long before the answer.
    Ago(Duration),
    /// Not since this leader began to listen, that long before the answer.
    NotFor(Duration),
}

//! Orders from a leader to a node, and the node's answers and reports.
//!
//! Owns the types of docs/protocol.md, section "Orders". It decides nothing: the leaders' rules crates decide what is
//! ordered, `order-rules` when it is sent, and `node-rules` what the node does about it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    ids::{ContainerId, ContainerName, Namespace, PodName, PodUid},
    order_id::{OrderId, Owner, Task},
};

/// One container instance, named as exactly as Kubernetes and CRI can: the fence of every order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    pub namespace: Namespace,
    pub pod: PodName,
    pub pod_uid: PodUid,
    pub container: ContainerName,
    pub container_id: ContainerId,
    /// Kubernetes' restart count of this instance.
    pub restart_count: u32,
}

/// Upper bound of [`Stop::grace`]; longer ones are shortened by the orderer and refused by the node.
pub const MAX_GRACE: Duration = Duration::from_secs(366 * 24 * 3600);

/// Work on one container instance, as a leader orders it from a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub id: OrderId,
    /// The fence: the node refuses the order where another instance is the newest.
    pub instance: Instance,
    /// The object that asks for it, for logs: `ContainerRecreateRequest <namespace>/<name>`.
    pub reason: String,
    pub verb: Verb,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sending {
    pub order: Order,
    /// How often the order has been sent, this time included.
    pub attempt: u32,
}

/// The kinds of work that a node carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Run the preStop hook and stop the instance. Done once, journaled and reported.
    Stop(Stop),
    /// Remove all exited instances of the container, so that the kubelet finds none and applies no back-off.
    /// The named instance is the newest and has exited. It may be done any number of times, so it is not journaled.
    RemoveDeadInstances,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Time for the preStop hook and the stop together.
    pub grace: Duration,
    pub pre_stop: Option<PreStop>,
    /// Counted from each sending: a stop that has not begun by then must not begin. `None`: no limit.
    pub begin_within: Option<Duration>,
}

// === impl Order ===

impl Order {
    /// The id follows from owner, verb and container.
    pub fn new(owner: Owner, instance: Instance, reason: String, verb: Verb) -> Self {
        Self {
            id: OrderId::new(owner, verb.task(), instance.container.clone()),
            instance,
            reason,
            verb,
        }
    }
}

// === impl Verb ===

impl Verb {
    /// The verb's part of an order's id.
    pub fn task(&self) -> Task {
        match self {
            Self::Stop(_) => Task::Stop,
            Self::RemoveDeadInstances => Task::RemoveDeadInstances,
        }
    }
}

/// A preStop hook. Ports are numbers: admission has resolved port names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PreStop {
    /// Run a command in the container.
    Exec { command: Vec<String> },
    /// Call a URL. Without a host it is the pod's own address; https is not verified, as the kubelet's is not.
    HttpGet {
        scheme: HttpScheme,
        host: Option<String>,
        port: u16,
        path: String,
        headers: Vec<(String, String)>,
    },
    /// Open a TCP connection and close it.
    TcpSocket { host: Option<String>, port: u16 },
    /// Wait.
    Sleep { duration: Duration },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpScheme {
    Http,
    Https,
}

/// A node's answer to an order, whatever its verb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Journaled: it will be done and reported, whatever crashes.
    Accepted,
    /// Not done and not journaled. The same order may be accepted later where the refusal allows it.
    Refused(Refusal),
    /// Done, now or earlier.
    Done {
        /// The instance that it was done to; a repeated order may name another. `None`: the one that the order names.
        container_id: Option<ContainerId>,
        outcome: Outcome,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    #[error("the pod is not on this node")]
    NoSuchPod,
    /// The pod is here, the container is not: never started, or removed.
    #[error("the runtime has no instance of the container")]
    NoSuchContainer,
    #[error("the newest instance is {container_id} with restart count {restart_count}")]
    OtherInstance {
        container_id: ContainerId,
        restart_count: u32,
    },
    #[error("the instance has already exited")]
    AlreadyExited,
    /// Of a removal: the named instance has not exited.
    #[error("the instance is still running")]
    StillRunning,
    /// Of a removal: a journaled stop of the container has not ended; a retry may succeed.
    #[error("the stop {order} of the container has not ended")]
    StopUnfinished { order: OrderId },
    /// A retry may succeed.
    #[error("the container runtime does not answer: {message}")]
    RuntimeUnavailable { message: String },
    /// A retry cannot succeed.
    #[error("the order cannot be carried out: {message}")]
    Invalid { message: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The runtime confirmed that the instance is stopped.
    Stopped {
        /// Why the preStop hook failed, if it did; the stop went on all the same.
        hook_error: Option<String>,
    },
    /// The instance was gone before it could be stopped.
    Gone,
    /// The runtime refused to stop it.
    Failed { message: String },
    /// No exited instance is left; so many were removed.
    Removed { count: u32 },
}

/// The end of a journaled order, repeated by the node until the orderer acknowledges it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub order: OrderId,
    pub attempt: u32,
    /// Grows with each report of an order; an older one is stale.
    pub sequence: u32,
    pub instance: Instance,
    pub outcome: Outcome,
}

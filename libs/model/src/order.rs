//! What a scheduler orders of a node, and what the node says of it.
//!
//! Owns the words of docs/protocol.md, section "Orders". It decides nothing: `crr-rules` says what is
//! ordered and `node-rules` what is done about it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::{ContainerId, ContainerName, Namespace, OrderId, PodName, PodUid};

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

/// The longest grace that a node takes; who asks for more means the same.
pub const MAX_GRACE: Duration = Duration::from_secs(366 * 24 * 3600);

/// "Stop this instance": the only verb with which a container is recreated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopOrder {
    pub id: OrderId,
    /// Counts the sendings of this order, from 1.
    pub attempt: u32,
    pub instance: Instance,
    /// Time for the preStop hook and the stop together.
    pub grace: Duration,
    pub pre_stop: Option<PreStop>,
    /// Counted from its sending: a stop that has not begun by then is wanted no more. `None` is no limit.
    #[serde(default)]
    pub begin_within: Option<Duration>,
    /// Who wants it, for logs and events: `ContainerRecreateRequest <namespace>/<name>`.
    pub reason: String,
}

/// "Remove every dead instance of this container", so that the kubelet finds none and no back-off bites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropOrder {
    pub id: OrderId,
    /// Counts the sendings of this order, from 1.
    pub attempt: u32,
    /// The newest instance, which has exited: the fence.
    pub instance: Instance,
    /// Who wants it, for logs.
    pub reason: String,
}

/// The node's answer to a drop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DropAnswer {
    /// All dead instances are gone.
    Dropped { count: u32 },
    /// Nothing was removed.
    Refused(Refusal),
}

/// Whatever a node may be ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeOrder {
    Stop(StopOrder),
    Drop(DropOrder),
}

/// A node's answer to whatever it was ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeAnswer {
    Stop(OrderAnswer),
    Drop(DropAnswer),
}

impl From<OrderAnswer> for NodeAnswer {
    fn from(answer: OrderAnswer) -> Self {
        Self::Stop(answer)
    }
}

impl From<DropAnswer> for NodeAnswer {
    fn from(answer: DropAnswer) -> Self {
        Self::Drop(answer)
    }
}

/// A preStop hook. Ports are numbers here: names were looked up by whoever made the order.
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

/// The node's answer to an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrderAnswer {
    /// Journaled: it will be done, and a report will follow, whatever crashes.
    Accepted,
    /// Not done and not journaled. The same order may be accepted later where the refusal says so.
    Refused(Refusal),
    /// Done before: the journaled result.
    Done {
        /// The instance that it was done to: an order that was sent again may name another.
        container_id: ContainerId,
        outcome: StopOutcome,
    },
}

/// Why a node does not take an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// No sandbox of that pod uid is on the node.
    #[error("the pod is not on this node")]
    NoSuchPod,
    /// The pod is here, the container is not: never started, or removed.
    #[error("the runtime has no instance of the container")]
    NoSuchContainer,
    /// The fence: the newest instance is another one than the order names.
    #[error("the newest instance is {container_id} with restart count {restart_count}")]
    OtherInstance {
        container_id: ContainerId,
        restart_count: u32,
    },
    /// The instance named has already exited.
    #[error("the instance has already exited")]
    AlreadyExited,
    /// Of a drop: the instance named has not exited.
    #[error("the instance is still running")]
    StillRunning,
    /// Of a drop: a stop of the container is in the journal and has not ended; worth sending again.
    #[error("the stop {order} of the container has not ended")]
    StopUnfinished { order: OrderId },
    /// The runtime does not answer; worth sending again.
    #[error("the container runtime does not answer: {message}")]
    RuntimeUnavailable { message: String },
    /// The order itself is unusable; not worth sending again.
    #[error("the order cannot be carried out: {message}")]
    Invalid { message: String },
}

/// How a stop ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopOutcome {
    /// The runtime confirmed that the instance is stopped.
    Stopped {
        /// Why the preStop hook failed, if it did; the stop went on all the same.
        hook_error: Option<String>,
    },
    /// The instance was gone before it could be stopped.
    Gone,
    /// The runtime refused to stop it.
    Failed { message: String },
}

/// A node's word on an order, repeated until a leader acknowledges it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopReport {
    pub order: OrderId,
    pub attempt: u32,
    /// Grows with each report of an order; an older one than was seen is dropped.
    pub sequence: u32,
    pub instance: Instance,
    pub outcome: StopOutcome,
}

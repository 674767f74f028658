//! What the rules need to know of a pod: its identity and its containers as the kubelet reports them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::{ContainerName, NodeName, PodKey, PodUid, RuntimeContainerId};

/// A pod as pod status shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    pub key: PodKey,
    pub uid: PodUid,
    pub node: Option<NodeName>,
    pub phase: PodPhase,
    pub restart_policy: RestartPolicy,
    pub is_being_deleted: bool,
    /// Containers and native sidecars, as far as status lists them.
    pub containers: Vec<ContainerStatus>,
    /// The object's resourceVersion: guards writes of its status.
    pub version: String,
    /// The readiness gate `KruisePodReady`, where the pod has it.
    pub gate: Option<Gate>,
    /// Whether every container is ready, as the kubelet's condition ContainersReady says.
    pub are_containers_ready: bool,
    /// Whether its init containers are done, as the kubelet's condition Initialized says; a pod without any is.
    pub is_initialized: bool,
    /// Of a static pod: the uid that the node knows it by, which is not the mirror pod's.
    pub static_uid: Option<PodUid>,
    /// Of a pod in its node's network: its address, which CRI does not tell.
    pub host_address: Option<String>,
}

/// A readiness gate, and the condition that opens and shuts it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Gate {
    /// `None`: nobody has written the condition yet.
    pub is_open: Option<bool>,
    /// A JSON list of [`GateHolder`]; other text means that nobody holds it.
    pub message: String,
}

/// Entry of the message of condition `KruisePodReady`, in OpenKruise's form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GateHolder {
    pub user_agent: String,
    pub key: String,
}

impl Pod {
    pub fn container(&self, name: &ContainerName) -> Option<&ContainerStatus> {
        let mut containers = self.containers.iter();
        containers.find(|container| container.name == *name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPhase {
    Pending,
    Running,
    Succeeded,
    Failed,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPolicy {
    Always,
    OnFailure,
    Never,
}

/// One entry of `status.containerStatuses`, or of `initContainerStatuses` for a native sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerStatus {
    pub name: ContainerName,
    /// `None` until the container was created once.
    pub container_id: Option<RuntimeContainerId>,
    pub restart_count: u32,
    pub is_ready: bool,
    pub state: ContainerState,
    /// How the container comes back: the pod's policy, or its own (native sidecars: Always).
    pub restart_policy: RestartPolicy,
    /// A native sidecar: it stands among the pod's init containers.
    pub is_sidecar: bool,
}

/// `state` of a container status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerState {
    Waiting {
        reason: Option<String>,
        message: Option<String>,
    },
    Running {
        started_at: Option<Timestamp>,
    },
    Terminated {
        exit_code: i32,
        reason: Option<String>,
    },
}

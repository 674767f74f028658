//! A pod as runtime and kubelet see it: instances that run, exit and are replaced.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::{
    ids::{ContainerId, ContainerName, PodKey},
    pod::{ContainerState, ContainerStatus, Pod, PodPhase, RestartPolicy},
};

/// One container of the pod: its newest instance in the runtime, and what pod status says.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    pub(crate) id: ContainerId,
    pub(crate) restart_count: u32,
    pub(crate) is_running: bool,
    pub(crate) is_stopping: bool,
}

/// The only pod of the world.
#[derive(Clone, Debug)]
pub(crate) struct RealPod {
    pub(crate) containers: BTreeMap<ContainerName, Container>,
}

impl RealPod {
    pub(crate) fn new(names: &[&str]) -> Self {
        let containers = names
            .iter()
            .map(|name| (ContainerName::new(*name), instance(name, 0)));
        Self {
            containers: containers.collect(),
        }
    }

    /// The kubelet starts the next instance.
    pub(crate) fn restart(&mut self, name: &ContainerName) {
        if let Some(container) = self.containers.get_mut(name)
            && !container.is_running
        {
            *container = instance(name.as_str(), container.restart_count + 1);
        }
    }

    /// Pod status as the kubelet would write it now.
    pub(crate) fn status(&self, started_at: Timestamp) -> Pod {
        let containers = self
            .containers
            .iter()
            .map(|(name, container)| ContainerStatus {
                name: name.clone(),
                container_id: format!("sim://{}", container.id).parse().ok(),
                restart_count: container.restart_count,
                is_ready: container.is_running,
                state: if container.is_running {
                    ContainerState::Running {
                        started_at: Some(started_at),
                    }
                } else {
                    ContainerState::Terminated {
                        exit_code: 143,
                        reason: None,
                    }
                },
                restart_policy: RestartPolicy::Always,
                is_sidecar: false,
            });
        Pod {
            key: key(),
            uid: "pod-uid".into(),
            node: Some("node-1".into()),
            phase: PodPhase::Running,
            restart_policy: RestartPolicy::Always,
            is_being_deleted: false,
            containers: containers.collect(),
            version: String::new(),
            gate: None,
            are_containers_ready: true,
            is_initialized: true,
            static_uid: None,
            host_address: None,
        }
    }
}

pub(crate) fn key() -> PodKey {
    PodKey {
        namespace: "shop".into(),
        name: "web".into(),
    }
}

fn instance(name: &str, restart_count: u32) -> Container {
    let id = ContainerId::new(format!("{name}-{restart_count}"));
    Container {
        id,
        restart_count,
        is_running: true,
        is_stopping: false,
    }
}

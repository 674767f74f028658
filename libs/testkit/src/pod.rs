//! Pods as pod status shows them.

use model::{
    ids::{ContainerName, NodeName, PodKey},
    pod::{ContainerState, ContainerStatus, Gate, Pod, PodPhase, RestartPolicy},
};

/// A pod under construction; [`PodBuilder::build`] ends it.
#[derive(Clone, Debug)]
pub struct PodBuilder(Pod);

/// The key of pod `shop/web`.
pub fn web() -> PodKey {
    PodKey {
        namespace: "shop".into(),
        name: "web".into(),
    }
}

/// Pod `shop/web`, running on `node-1`, with these containers running and ready.
pub fn pod(containers: &[&str]) -> PodBuilder {
    PodBuilder(Pod {
        key: web(),
        uid: "pod-uid".into(),
        node: Some("node-1".into()),
        phase: PodPhase::Running,
        restart_policy: RestartPolicy::Always,
        is_being_deleted: false,
        containers: containers.iter().map(|name| container(name)).collect(),
        version: "1".to_owned(),
        gate: None,
        are_containers_ready: true,
        is_initialized: true,
        static_uid: None,
        host_address: None,
    })
}

/// The first instance of a container, `containerd://<name>-0`, running and ready.
pub fn container(name: &str) -> ContainerStatus {
    ContainerStatus {
        name: ContainerName::new(name),
        container_id: format!("containerd://{name}-0").parse().ok(),
        restart_count: 0,
        is_ready: true,
        state: ContainerState::Running { started_at: None },
        restart_policy: RestartPolicy::Always,
        is_sidecar: false,
    }
}

// === impl PodBuilder ===

impl PodBuilder {
    pub fn build(self) -> Pod {
        self.0
    }

    /// Changes the pod in a way that has no word of its own.
    pub fn with(mut self, change: impl FnOnce(&mut Pod)) -> Self {
        change(&mut self.0);
        self
    }

    /// Changes one container's status.
    pub fn container(self, name: &str, change: impl FnOnce(&mut ContainerStatus)) -> Self {
        self.with(|pod| {
            let mut containers = pod.containers.iter_mut();
            let status = containers.find(|status| status.name.as_str() == name);
            change(status.expect("the test names a container of the pod"));
        })
    }

    pub fn on(self, node: Option<&str>) -> Self {
        self.with(|pod| pod.node = node.map(NodeName::from))
    }

    pub fn named(self, name: &str) -> Self {
        self.with(|pod| pod.key.name = name.into())
    }

    pub fn uid(self, uid: &str) -> Self {
        self.with(|pod| pod.uid = uid.into())
    }

    pub fn version(self, version: &str) -> Self {
        self.with(|pod| version.clone_into(&mut pod.version))
    }

    pub fn deleted(self) -> Self {
        self.with(|pod| pod.is_being_deleted = true)
    }

    /// With the readiness gate `KruisePodReady`.
    pub fn gated(self, is_open: Option<bool>, message: &str) -> Self {
        let message = message.to_owned();
        self.with(|pod| pod.gate = Some(Gate { is_open, message }))
    }

    /// Another instance of the container runs.
    pub fn restarted(self, name: &str, container_id: &str, restart_count: u32) -> Self {
        self.container(name, |status| {
            status.container_id = format!("containerd://{container_id}").parse().ok();
            status.restart_count = restart_count;
        })
    }

    /// The container runs and is not ready.
    pub fn unready(self, name: &str) -> Self {
        self.container(name, |status| status.is_ready = false)
    }

    /// The container's instance has exited.
    pub fn exited(self, name: &str, exit_code: i32) -> Self {
        self.container(name, |status| {
            status.is_ready = false;
            status.state = ContainerState::Terminated {
                exit_code,
                reason: None,
            };
        })
    }

    /// The container waits for that reason.
    pub fn waiting(self, name: &str, reason: &str) -> Self {
        let reason = Some(reason.to_owned());
        self.container(name, |status| {
            status.is_ready = false;
            status.state = ContainerState::Waiting {
                reason,
                message: None,
            };
        })
    }
}

//! Pods: identity, containers and native sidecars.

use k8s_openapi::{
    api::core::v1::{self as core, Pod as PodObject},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use model::{
    ids::{InvalidContainerId, NodeName, PodKey, PodUid},
    labels,
    pod::{ContainerState, ContainerStatus, Gate, Pod, PodPhase, RestartPolicy},
};

#[derive(Debug, thiserror::Error)]
pub enum InvalidPod {
    #[error("{field} is missing")]
    Missing { field: &'static str },
    #[error("status of container {container} cannot be read")]
    ContainerId {
        container: String,
        #[source]
        source: InvalidContainerId,
    },
}

/// Reads a pod.
///
/// # Errors
/// The pod has no name, namespace, uid or spec, or a container id has an unknown form.
pub fn pod_from_object(object: &PodObject) -> Result<Pod, InvalidPod> {
    let metadata = &object.metadata;
    let missing = |field| InvalidPod::Missing { field };
    let text = |value: &Option<String>, field| value.clone().ok_or(missing(field));
    let spec = object.spec.as_ref().ok_or(missing("spec"))?;
    let status = object.status.clone().unwrap_or_default();
    let name = text(&metadata.name, "metadata.name")?;
    let namespace = text(&metadata.namespace, "metadata.namespace")?;
    let pod_policy = restart_policy(spec.restart_policy.as_deref());
    let conditions = status.conditions.unwrap_or_default();
    let has_condition = |kind: &str, state: &str| {
        let mut conditions = conditions.iter();
        conditions.any(|condition| condition.type_ == kind && condition.status == state)
    };

    let mut containers = Vec::new();
    for entry in status.container_statuses.unwrap_or_default() {
        let policy = own_policy(&spec.containers, &entry.name).unwrap_or(pod_policy);
        containers.push(container_status(entry, policy, false)?);
    }
    let init_containers = spec.init_containers.as_deref().unwrap_or_default();
    for entry in status.init_container_statuses.unwrap_or_default() {
        let mut inits = init_containers.iter();
        if inits.any(|it| it.name == entry.name && is_native_sidecar(it)) {
            containers.push(container_status(entry, RestartPolicy::Always, true)?);
        }
    }
    Ok(Pod {
        key: PodKey {
            namespace: namespace.as_str().into(),
            name: name.as_str().into(),
        },
        uid: text(&metadata.uid, "metadata.uid")?.as_str().into(),
        node: spec.node_name.as_deref().map(NodeName::from),
        phase: phase(status.phase.as_deref()),
        restart_policy: pod_policy,
        is_being_deleted: metadata.deletion_timestamp.is_some(),
        containers,
        version: metadata.resource_version.clone().unwrap_or_default(),
        gate: gate(spec, &conditions),
        are_containers_ready: has_condition("ContainersReady", "True"),
        is_initialized: !has_condition("Initialized", "False"),
        static_uid: static_uid(metadata),
        host_address: status.pod_ip.filter(|_| spec.host_network == Some(true)),
    })
}

/// The readiness gate `KruisePodReady`, where the pod has it.
fn gate(spec: &core::PodSpec, conditions: &[core::PodCondition]) -> Option<Gate> {
    let mut gates = spec.readiness_gates.iter().flatten();
    if !gates.any(|gate| gate.condition_type == labels::KRUISE_POD_READY) {
        return None;
    }
    let mut conditions = conditions.iter();
    let condition = conditions.find(|condition| condition.type_ == labels::KRUISE_POD_READY);
    Some(condition.map_or_else(Gate::default, |condition| Gate {
        is_open: Some(condition.status == "True"),
        message: condition.message.clone().unwrap_or_default(),
    }))
}

/// The kubelet's uid of a static pod, which differs from the uid of its mirror.
fn static_uid(metadata: &ObjectMeta) -> Option<PodUid> {
    let annotations = metadata.annotations.as_ref()?;
    annotations.get(labels::CONFIG_MIRROR)?;
    let hash = annotations.get(labels::CONFIG_HASH)?;
    Some(PodUid::new(hash.clone()))
}

/// The restart policy of a container that has its own (KEP-5307).
fn own_policy(containers: &[core::Container], name: &str) -> Option<RestartPolicy> {
    let container = containers.iter().find(|container| container.name == name)?;
    let policy = container.restart_policy.as_deref()?;
    Some(restart_policy(Some(policy)))
}

/// True for an init container that is kept running (KEP-753).
pub fn is_native_sidecar(init_container: &core::Container) -> bool {
    init_container.restart_policy.as_deref() == Some("Always")
}

fn container_status(
    entry: core::ContainerStatus,
    restart_policy: RestartPolicy,
    is_sidecar: bool,
) -> Result<ContainerStatus, InvalidPod> {
    let id = entry.container_id.filter(|id| !id.is_empty());
    let container_id = id.map(|id| id.parse()).transpose();
    let container_id = container_id.map_err(|source| InvalidPod::ContainerId {
        container: entry.name.clone(),
        source,
    })?;
    Ok(ContainerStatus {
        name: entry.name.as_str().into(),
        container_id,
        restart_count: u32::try_from(entry.restart_count).unwrap_or(0),
        is_ready: entry.ready,
        state: container_state(entry.state.unwrap_or_default()),
        restart_policy,
        is_sidecar,
    })
}

fn container_state(state: core::ContainerState) -> ContainerState {
    if let Some(running) = state.running {
        let started_at = running.started_at.map(|time| time.0);
        ContainerState::Running { started_at }
    } else if let Some(terminated) = state.terminated {
        let (exit_code, reason) = (terminated.exit_code, terminated.reason);
        ContainerState::Terminated { exit_code, reason }
    } else {
        // The API: a state with no member set is waiting.
        let waiting = state.waiting.unwrap_or_default();
        let (reason, message) = (waiting.reason, waiting.message);
        ContainerState::Waiting { reason, message }
    }
}

fn phase(phase: Option<&str>) -> PodPhase {
    match phase {
        Some("Pending") | None => PodPhase::Pending,
        Some("Running") => PodPhase::Running,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        Some(_) => PodPhase::Unknown,
    }
}

fn restart_policy(policy: Option<&str>) -> RestartPolicy {
    match policy {
        Some("Never") => RestartPolicy::Never,
        Some("OnFailure") => RestartPolicy::OnFailure,
        Some(_) | None => RestartPolicy::Always,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn native_sidecars_are_read_and_ordinary_init_containers_are_not() {
        let object = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "u"},
            "spec": {
                "containers": [{"name": "app"}, {"name": "helper", "restartPolicy": "OnFailure"}],
                "initContainers": [{"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"}],
                "restartPolicy": "Never",
            },
            "status": {
                "phase": "Running",
                "containerStatuses": [status("app"), status("helper")],
                "initContainerStatuses": [status("setup"), status("proxy")],
            },
        }));
        let pod = pod_from_object(&object.unwrap()).unwrap();
        let read: Vec<_> = pod
            .containers
            .iter()
            .map(|container| {
                let name = container.name.as_str();
                (name, container.restart_policy, container.is_sidecar)
            })
            .collect();
        assert_eq!(
            read,
            [
                ("app", RestartPolicy::Never, false),
                ("helper", RestartPolicy::OnFailure, false),
                ("proxy", RestartPolicy::Always, true)
            ]
        );
    }

    fn status(name: &str) -> serde_json::Value {
        json!({
            "name": name, "containerID": "containerd://1", "restartCount": 0, "ready": true,
            "image": "", "imageID": "", "state": {"running": {}},
        })
    }
}

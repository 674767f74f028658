//! Pods: identity, containers and native sidecars as the kubelet reports them.

use k8s_openapi::{
    api::core::v1::{self as core, Pod as PodObject},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use model::{
    ids::{InvalidContainerId, NodeName, PodKey, PodUid},
    labels,
    pod::{ContainerState, ContainerStatus, Gate, Pod, PodPhase, RestartPolicy},
};

/// A pod that cannot be read.
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
/// It has no name, namespace or uid, or a container id of no known form.
pub fn pod_from_object(object: &PodObject) -> Result<Pod, InvalidPod> {
    let metadata = &object.metadata;
    let missing = |field| InvalidPod::Missing { field };
    let spec = object.spec.as_ref().ok_or(missing("spec"))?;
    let status = object.status.clone().unwrap_or_default();
    let name = metadata.name.as_deref().ok_or(missing("metadata.name"))?;
    let namespace = metadata
        .namespace
        .as_deref()
        .ok_or(missing("metadata.namespace"))?;
    let restart_policy = restart_policy(spec.restart_policy.as_deref());
    let conditions = status.conditions.unwrap_or_default();

    let mut containers = Vec::new();
    for entry in status.container_statuses.unwrap_or_default() {
        let policy = own_policy(spec, &entry.name).unwrap_or(restart_policy);
        containers.push(container_status(entry, policy)?);
    }
    for entry in status.init_container_statuses.unwrap_or_default() {
        if is_native_sidecar(spec, &entry.name) {
            containers.push(ContainerStatus {
                is_sidecar: true,
                ..container_status(entry, RestartPolicy::Always)?
            });
        }
    }
    Ok(Pod {
        key: PodKey {
            namespace: namespace.into(),
            name: name.into(),
        },
        uid: metadata
            .uid
            .as_deref()
            .ok_or(missing("metadata.uid"))?
            .into(),
        node: spec.node_name.as_deref().map(NodeName::from),
        phase: phase(status.phase.as_deref()),
        restart_policy,
        is_being_deleted: metadata.deletion_timestamp.is_some(),
        containers,
        version: metadata.resource_version.clone().unwrap_or_default(),
        gate: gate(spec, &conditions),
        are_containers_ready: conditions
            .iter()
            .any(|condition| condition.type_ == "ContainersReady" && condition.status == "True"),
        is_initialized: !conditions
            .iter()
            .any(|condition| condition.type_ == "Initialized" && condition.status == "False"),
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

/// The kubelet's own name for a static pod: the API server gave its mirror another uid.
fn static_uid(metadata: &ObjectMeta) -> Option<PodUid> {
    let annotations = metadata.annotations.as_ref()?;
    annotations.get(labels::CONFIG_MIRROR)?;
    annotations
        .get(labels::CONFIG_HASH)
        .map(|hash| PodUid::new(hash.clone()))
}

/// How a container comes back, where it says so itself (KEP-5307).
fn own_policy(spec: &core::PodSpec, name: &str) -> Option<RestartPolicy> {
    let container = spec.containers.iter().find(|it| it.name == name)?;
    container
        .restart_policy
        .as_deref()
        .map(|policy| restart_policy(Some(policy)))
}

/// An init container that is kept running (KEP-753).
fn is_native_sidecar(spec: &core::PodSpec, name: &str) -> bool {
    let mut init_containers = spec.init_containers.iter().flatten();
    init_containers.any(|container| {
        container.name == name && container.restart_policy.as_deref() == Some("Always")
    })
}

fn container_status(
    entry: core::ContainerStatus,
    restart_policy: RestartPolicy,
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
        is_sidecar: false,
    })
}

fn container_state(state: core::ContainerState) -> ContainerState {
    if let Some(running) = state.running {
        ContainerState::Running {
            started_at: running.started_at.map(|time| time.0),
        }
    } else if let Some(terminated) = state.terminated {
        let core::ContainerStateTerminated {
            exit_code, reason, ..
        } = terminated;
        ContainerState::Terminated { exit_code, reason }
    } else {
        // The API: a state with no member set is waiting.
        let waiting = state.waiting.unwrap_or_default();
        ContainerState::Waiting {
            reason: waiting.reason,
            message: waiting.message,
        }
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

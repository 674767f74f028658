//! Fields of a pod that several commands read.

use k8s_api::convert::is_native_sidecar;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum ContainerKind {
    Container,
    /// A native sidecar: an init container that lives on.
    Sidecar,
    Init,
}

/// Names and kinds of all containers in the order of the spec: init containers first.
pub(crate) fn containers(pod: &Pod) -> impl Iterator<Item = (&String, ContainerKind)> {
    let spec = pod.spec.iter();
    let inits = spec.flat_map(|spec| spec.init_containers.iter().flatten());
    let inits = inits.map(|container| match is_native_sidecar(container) {
        true => (&container.name, ContainerKind::Sidecar),
        false => (&container.name, ContainerKind::Init),
    });
    let mains = pod.spec.iter().flat_map(|spec| &spec.containers);
    inits.chain(mains.map(|container| (&container.name, ContainerKind::Container)))
}

/// Names of the containers that can be recreated: ordinary init containers cannot.
pub(crate) fn restartable_containers(pod: &Pod) -> Vec<String> {
    let all = containers(pod).filter(|(_, kind)| *kind != ContainerKind::Init);
    all.map(|(name, _)| name.clone()).collect()
}

pub(crate) fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.iter();
    let lists = status.flat_map(|it| [&it.init_container_statuses, &it.container_statuses]);
    lists.flatten().flatten()
}

pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let status = pod.status.iter();
    let mut conditions = status.flat_map(|status| status.conditions.iter().flatten());
    conditions.find(|condition| condition.type_ == kind)
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

pub(crate) fn has_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// True if no one should count on the pod: it ends or has ended.
pub(crate) fn is_leaving(pod: &Pod) -> bool {
    has_finished(pod) || pod.metadata.deletion_timestamp.is_some()
}

/// The node's name; empty before the pod is scheduled.
pub(crate) fn node(pod: &Pod) -> &str {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_containers_are_those_that_live_on() {
        let pod: Pod = serde_json::from_value(json!({ "spec": {
            "initContainers": [{ "name": "setup" }, { "name": "proxy", "restartPolicy": "Always" }],
            "containers": [{ "name": "app" }, { "name": "log" }],
        }}))
        .unwrap();
        assert_eq!(restartable_containers(&pod), ["proxy", "app", "log"]);
    }
}

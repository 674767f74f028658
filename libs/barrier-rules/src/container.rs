//! State of one container with a barrier: up, or waiting, and why.
//!
//! Owns the comparison of pod status with the node's reports of started containers.

use std::collections::BTreeMap;

use model::{
    ids::{ContainerId, ContainerName},
    launch::{BARRIER_SUFFIX, LaunchContainer},
    pod::{ContainerState, ContainerStatus, Pod, RestartPolicy},
};

/// A container that is not up, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub container: ContainerName,
    pub why: String,
}

/// The reason why the level below has to wait for the container; `None` if it is up.
pub(crate) fn waiting(
    pod: &Pod,
    container: &LaunchContainer,
    started: &BTreeMap<ContainerName, ContainerId>,
) -> Option<Waiting> {
    let status = pod.container(&container.name);
    let is_up = status.is_some_and(is_up) || is_started(container, started, status);
    (!is_up).then(|| Waiting {
        container: container.name.clone(),
        why: why(pod, status),
    })
}

/// True if pod status shows the container up. One that ended and is not restarted counts: it will never be ready.
fn is_up(status: &ContainerStatus) -> bool {
    match &status.state {
        ContainerState::Running { .. } => status.is_ready,
        ContainerState::Terminated { exit_code, .. } => match status.restart_policy {
            RestartPolicy::Never => true,
            RestartPolicy::OnFailure => *exit_code == 0,
            RestartPolicy::Always => false,
        },
        ContainerState::Waiting { .. } => false,
    }
}

/// True if the node reported a start, a start is enough, and pod status does not show that this instance ended.
fn is_started(
    container: &LaunchContainer,
    started: &BTreeMap<ContainerName, ContainerId>,
    status: Option<&ContainerStatus>,
) -> bool {
    let Some(started) = started.get(&container.name) else {
        return false;
    };
    let is_outdated = status.is_some_and(|status| {
        let id = status.container_id.as_ref();
        let is_running = matches!(status.state, ContainerState::Running { .. });
        id.is_some_and(|id| id.id == *started) && !is_running
    });
    !container.needs_status && !is_outdated
}

fn why(pod: &Pod, status: Option<&ContainerStatus>) -> String {
    if pod.node.is_none() {
        return "the pod is on no node yet".to_owned();
    }
    let Some(status) = status else {
        return "the kubelet has not begun".to_owned();
    };
    match &status.state {
        ContainerState::Running { .. } => "running, not ready".to_owned(),
        ContainerState::Terminated { exit_code, reason } => {
            let reason = reason.as_deref().unwrap_or("no reason given");
            format!("ended with exit code {exit_code}: {reason}")
        }
        ContainerState::Waiting { reason, message } => match (reason, message) {
            (Some(reason), _) if is_for_its_key(pod, status) => {
                format!("the kubelet has found no key for it yet ({reason})")
            }
            (Some(reason), Some(message)) => format!("{reason}: {message}"),
            (Some(text), None) | (None, Some(text)) => text.clone(),
            (None, None) => "waiting, no reason given".to_owned(),
        },
    }
}

/// True if the kubelet tried to create the container and did not find its key.
pub(crate) fn is_for_its_key(pod: &Pod, status: &ContainerStatus) -> bool {
    let ContainerState::Waiting {
        reason: Some(reason),
        message,
    } = &status.state
    else {
        return false;
    };
    let map = format!("{}{BARRIER_SUFFIX}", pod.key.name);
    // Both "configmap "web-barrier" not found" and "couldn't find key p_1 in ConfigMap shop/web-barrier".
    let is_about_map = |message: &String| message.contains(&map);
    reason == "CreateContainerConfigError" && message.as_ref().is_none_or(is_about_map)
}

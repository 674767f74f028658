//! Whether a container behind a barrier is up, and what it waits for otherwise.

use model::{
    ids::ContainerName,
    launch::{BARRIER_SUFFIX, LaunchContainer},
    pod::{ContainerState, ContainerStatus, Pod, RestartPolicy},
};

use crate::Snapshot;

/// A container that is not up, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub container: ContainerName,
    pub why: String,
}

/// `None`: the level below need not wait for it.
pub(crate) fn waiting(snapshot: &Snapshot<'_>, container: &LaunchContainer) -> Option<Waiting> {
    let pod = &snapshot.pod.pod;
    let status = pod.container(&container.name);
    let is_up = status.is_some_and(is_up) || is_started(snapshot, container, status);
    (!is_up).then(|| Waiting {
        container: container.name.clone(),
        why: why(pod, status),
    })
}

/// By the kubelet's word. One that ended and stays so will never be ready: waiting for it would be for ever.
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

/// By the node's word, where a start is all that is waited for and the kubelet does not know better.
fn is_started(
    snapshot: &Snapshot<'_>,
    container: &LaunchContainer,
    status: Option<&ContainerStatus>,
) -> bool {
    let Some(started) = snapshot.started.get(&container.name) else {
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

/// Whether the kubelet has tried to create the container and found no key of ours.
pub(crate) fn is_for_its_key(pod: &Pod, status: &ContainerStatus) -> bool {
    match &status.state {
        ContainerState::Waiting {
            reason: Some(reason),
            message,
        } => {
            let map = format!("{}{BARRIER_SUFFIX}", pod.key.name);
            // Both "configmap "web-barrier" not found" and "couldn't find key p_1 in ConfigMap shop/web-barrier".
            reason == "CreateContainerConfigError"
                && message
                    .as_ref()
                    .is_none_or(|message| message.contains(&map))
        }
        ContainerState::Waiting { reason: None, .. }
        | ContainerState::Running { .. }
        | ContainerState::Terminated { .. } => false,
    }
}

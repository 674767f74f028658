//! Which containers behind launch barriers run: as events tell, and as a list tells.
//!
//! The kubelet copies a pod's labels to its sandbox, so that the runtime knows which pods have barriers.

use std::collections::{BTreeMap, HashMap};

use k8s_cri::v1::{
    ContainerEventResponse, ContainerEventType, ContainerFilter, ContainerState,
    ContainerStateValue, GetEventsRequest, ListContainersRequest, ListPodSandboxRequest,
    PodSandboxFilter, PodSandboxMetadata,
};
use model::{
    ids::{ContainerId, ContainerName, PodKey, PodUid},
    labels::{LAUNCH_BARRIER, LAUNCH_BARRIER_TRUE},
    launch::Started,
};
use tonic::Streaming;

use super::{CALL_TIMEOUT, Cri, CriError, call, name_of};

const EVENTS: &str = "GetContainerEvents";

// === impl Cri ===

impl Cri {
    /// What becomes of containers from now on, until the runtime goes away. It may take as long as nothing happens.
    pub(crate) async fn watch_events(&self) -> Result<Streaming<ContainerEventResponse>, CriError> {
        let mut client = self.client.clone();
        let answer = client.get_container_events(GetEventsRequest {}).await;
        let events = answer.map_err(|status| CriError::answered(EVENTS, status))?;
        Ok(events.into_inner())
    }

    /// The containers that run behind barriers.
    pub(crate) async fn list_started(&self) -> Result<Vec<Started>, CriError> {
        let mut client = self.client.clone();
        let barrier = (LAUNCH_BARRIER.to_owned(), LAUNCH_BARRIER_TRUE.to_owned());
        let filter = PodSandboxFilter {
            label_selector: HashMap::from([barrier]),
            ..PodSandboxFilter::default()
        };
        let sandboxes = call("ListPodSandbox", CALL_TIMEOUT, async move {
            let filter = Some(filter);
            client
                .list_pod_sandbox(ListPodSandboxRequest { filter })
                .await
        });
        let sandboxes = sandboxes.await?.items;
        let pods: BTreeMap<_, _> = sandboxes
            .into_iter()
            .filter_map(|sandbox| Some((sandbox.id, pod_of(sandbox.metadata?))))
            .collect();
        if pods.is_empty() {
            return Ok(Vec::new());
        }
        let mut client = self.client.clone();
        let state = ContainerState::ContainerRunning as i32;
        let filter = ContainerFilter {
            state: Some(ContainerStateValue { state }),
            ..ContainerFilter::default()
        };
        let containers = call("ListContainers", CALL_TIMEOUT, async move {
            let filter = Some(filter);
            client
                .list_containers(ListContainersRequest { filter })
                .await
        });
        let running = containers.await?.containers.into_iter();
        let started = running.filter_map(|container| {
            let (pod, pod_uid) = pods.get(&container.pod_sandbox_id)?.clone();
            Some(Started {
                pod,
                pod_uid,
                container: ContainerName::new(name_of(&container)?),
                container_id: ContainerId::new(container.id),
            })
        });
        Ok(started.collect())
    }
}

/// The next event of a stream; `None` when the runtime has ended it.
pub(crate) async fn next_event(
    events: &mut Streaming<ContainerEventResponse>,
) -> Result<Option<ContainerEventResponse>, CriError> {
    let next = events.message().await;
    next.map_err(|status| CriError::answered(EVENTS, status))
}

/// The start that an event tells of, if it is one behind a barrier.
pub(crate) fn start_of(event: ContainerEventResponse) -> Option<Started> {
    if event.container_event_type != ContainerEventType::ContainerStartedEvent as i32 {
        return None;
    }
    let sandbox = event.pod_sandbox_status?;
    if sandbox.labels.get(LAUNCH_BARRIER).map(String::as_str) != Some(LAUNCH_BARRIER_TRUE) {
        return None;
    }
    let mut statuses = event.containers_statuses.into_iter();
    // A sandbox has events of its own, and no status among the containers'.
    let container = statuses.find(|status| status.id == event.container_id)?;
    let (pod, pod_uid) = pod_of(sandbox.metadata?);
    Some(Started {
        pod,
        pod_uid,
        container: ContainerName::new(container.metadata?.name),
        container_id: ContainerId::new(container.id),
    })
}

fn pod_of(metadata: PodSandboxMetadata) -> (PodKey, PodUid) {
    let pod = PodKey {
        namespace: metadata.namespace.as_str().into(),
        name: metadata.name.as_str().into(),
    };
    (pod, PodUid::new(metadata.uid))
}

#[cfg(test)]
mod tests {
    use k8s_cri::v1::{ContainerMetadata, ContainerStatus, PodSandboxStatus};

    use super::*;

    fn event(kind: ContainerEventType, container: &str, label: &str) -> ContainerEventResponse {
        let status = |name: &str| ContainerStatus {
            id: format!("{name}-1"),
            metadata: Some(ContainerMetadata {
                name: name.to_owned(),
                attempt: 0,
            }),
            ..ContainerStatus::default()
        };
        let sandbox = PodSandboxStatus {
            metadata: Some(PodSandboxMetadata {
                name: "web".to_owned(),
                uid: "u".to_owned(),
                namespace: "shop".to_owned(),
                attempt: 0,
            }),
            labels: HashMap::from([(LAUNCH_BARRIER.to_owned(), label.to_owned())]),
            ..PodSandboxStatus::default()
        };
        ContainerEventResponse {
            container_id: container.to_owned(),
            container_event_type: kind as i32,
            created_at: 0,
            pod_sandbox_status: Some(sandbox),
            containers_statuses: vec![status("main"), status("proxy")],
        }
    }

    #[test]
    fn a_start_behind_a_barrier_is_told_and_nothing_else() {
        let started = ContainerEventType::ContainerStartedEvent;
        let told = Started {
            pod: PodKey {
                namespace: "shop".into(),
                name: "web".into(),
            },
            pod_uid: "u".into(),
            container: "proxy".into(),
            container_id: "proxy-1".into(),
        };
        assert_eq!(start_of(event(started, "proxy-1", "true")), Some(told));
        for silent in [
            event(started, "proxy-1", "false"),
            event(started, "the-sandbox", "true"),
            event(ContainerEventType::ContainerCreatedEvent, "proxy-1", "true"),
            event(ContainerEventType::ContainerStoppedEvent, "proxy-1", "true"),
            ContainerEventResponse::default(),
        ] {
            assert_eq!(start_of(silent), None);
        }
    }
}

//! Container events, and the list of containers that stands in for missed ones.
//!
//! Owns the event stream of one connection and the form of its events. The kubelet copies a pod's labels to its
//! sandbox, so that the runtime knows them.

use std::collections::{BTreeMap, HashMap};

use k8s_cri::v1::{
    ContainerEventResponse, ContainerEventType, ContainerState as CriState, GetEventsRequest,
    PodSandboxMetadata,
};
use model::ids::{ContainerId, ContainerName, PodKey, PodUid};
use tonic::Streaming;

use crate::{Cri, CriError, client::name_of, error::Result};

const METHOD: &str = "GetContainerEvents";

/// One container instance at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub pod: PodKey,
    pub pod_uid: PodUid,
    pub container: ContainerName,
    pub container_id: ContainerId,
    pub state: ContainerState,
    /// The labels of the pod's sandbox: the pod's own, and the kubelet's.
    pub sandbox_labels: BTreeMap<String, String>,
}

/// The state of an instance, as CRI defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerState {
    Created,
    Running,
    Exited,
    /// The runtime lost track of it.
    Unknown,
}

/// The event stream of one connection.
pub struct ContainerEvents(Streaming<ContainerEventResponse>);

// === impl Cri ===

impl Cri {
    /// Opens the event stream. The runtime may answer only with its first event, so that there is no time limit.
    pub async fn watch_events(&self) -> Result<ContainerEvents> {
        let mut client = self.client.clone();
        let answer = client.get_container_events(GetEventsRequest {}).await;
        let stream = answer.map_err(|status| CriError::answered(METHOD, status))?;
        Ok(ContainerEvents(stream.into_inner()))
    }

    /// Lists all container instances of all pods.
    pub async fn list_containers(&self) -> Result<Vec<Observation>> {
        let sandboxes = self.list_sandboxes(None).await?.into_iter();
        let sandboxes = sandboxes.map(|sandbox| (sandbox.id.clone(), sandbox));
        let sandboxes: BTreeMap<_, _> = sandboxes.collect();
        let containers = self.list_pod_containers(None).await?.into_iter();
        let observations = containers.filter_map(|container| {
            let sandbox = sandboxes.get(&container.pod_sandbox_id)?;
            let sandbox = (sandbox.metadata.as_ref()?, &sandbox.labels);
            let name = ContainerName::new(name_of(&container)?);
            let state = match CriState::try_from(container.state) {
                Ok(CriState::ContainerCreated) => ContainerState::Created,
                Ok(CriState::ContainerRunning) => ContainerState::Running,
                Ok(CriState::ContainerExited) => ContainerState::Exited,
                Ok(CriState::ContainerUnknown) | Err(_) => ContainerState::Unknown,
            };
            Some(observe(sandbox, name, container.id, state))
        });
        Ok(observations.collect())
    }
}

// === impl ContainerEvents ===

impl ContainerEvents {
    /// Waits until a container is created, started or ends; `None` when the runtime ended the stream.
    ///
    /// # Errors
    /// The connection broke, or the runtime ended the stream with an error.
    pub async fn next(&mut self) -> Result<Option<Observation>> {
        let broken = |status| CriError::answered(METHOD, status);
        while let Some(event) = self.0.message().await.map_err(broken)? {
            if let Some(observation) = observation_of(event) {
                return Ok(Some(observation));
            }
        }
        Ok(None)
    }
}

/// The observation of a container in a sandbox.
fn observe(
    sandbox: (&PodSandboxMetadata, &HashMap<String, String>),
    container: ContainerName,
    container_id: String,
    state: ContainerState,
) -> Observation {
    let (pod, labels) = sandbox;
    Observation {
        pod: PodKey {
            namespace: pod.namespace.as_str().into(),
            name: pod.name.as_str().into(),
        },
        pod_uid: PodUid::new(&pod.uid),
        container,
        container_id: ContainerId::new(container_id),
        state,
        sandbox_labels: labels.clone().into_iter().collect(),
    }
}

/// What an event shows of a container; `None` for the events of a sandbox and of a removal, which names only an id.
fn observation_of(event: ContainerEventResponse) -> Option<Observation> {
    let state = match ContainerEventType::try_from(event.container_event_type).ok()? {
        ContainerEventType::ContainerCreatedEvent => ContainerState::Created,
        ContainerEventType::ContainerStartedEvent => ContainerState::Running,
        ContainerEventType::ContainerStoppedEvent => ContainerState::Exited,
        ContainerEventType::ContainerDeletedEvent => return None,
    };
    let sandbox = event.pod_sandbox_status?;
    let mut statuses = event.containers_statuses.into_iter();
    // A sandbox's own events have its id, which is not among the containers' statuses.
    let container = statuses.find(|status| status.id == event.container_id)?;
    let name = ContainerName::new(container.metadata?.name);
    let sandbox = (sandbox.metadata.as_ref()?, &sandbox.labels);
    Some(observe(sandbox, name, container.id, state))
}

#[cfg(test)]
mod tests {
    use k8s_cri::v1::{ContainerMetadata, ContainerStatus, PodSandboxStatus};

    use super::*;

    fn event(kind: ContainerEventType, container: &str) -> ContainerEventResponse {
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
            labels: HashMap::from([("app".to_owned(), "web".to_owned())]),
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
    fn an_event_observes_its_container_with_pod_and_labels() {
        for (kind, state) in [
            (
                ContainerEventType::ContainerCreatedEvent,
                ContainerState::Created,
            ),
            (
                ContainerEventType::ContainerStartedEvent,
                ContainerState::Running,
            ),
            (
                ContainerEventType::ContainerStoppedEvent,
                ContainerState::Exited,
            ),
        ] {
            let observation = Observation {
                pod: PodKey {
                    namespace: "shop".into(),
                    name: "web".into(),
                },
                pod_uid: "u".into(),
                container: "proxy".into(),
                container_id: "proxy-1".into(),
                state,
                sandbox_labels: BTreeMap::from([("app".to_owned(), "web".to_owned())]),
            };
            assert_eq!(observation_of(event(kind, "proxy-1")), Some(observation));
        }
    }

    #[test]
    fn a_removal_is_ignored() {
        let event = ContainerEventResponse {
            container_id: "proxy-1".to_owned(),
            container_event_type: ContainerEventType::ContainerDeletedEvent as i32,
            ..ContainerEventResponse::default()
        };
        assert_eq!(observation_of(event), None);
    }

    #[test]
    fn events_of_sandboxes_and_empty_events_are_ignored() {
        let started = ContainerEventType::ContainerStartedEvent;
        assert_eq!(observation_of(event(started, "the-sandbox")), None);
        assert_eq!(observation_of(ContainerEventResponse::default()), None);
    }
}

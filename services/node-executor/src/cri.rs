//! The container runtime, by CRI v1 over its unix socket.
//!
//! Owns the connection, the calls and what their answers mean. It decides nothing, and connects anew by
//! itself at the next call whenever the runtime was away.

mod error;
mod starts;

use std::{collections::HashMap, path::PathBuf, time::Duration};

use hyper_util::rt::TokioIo;
use k8s_cri::v1::{
    Container, ContainerFilter, ContainerState, ContainerStatusRequest, ExecSyncRequest,
    ExecSyncResponse, ListContainersRequest, ListPodSandboxRequest, PodSandbox, PodSandboxFilter,
    PodSandboxStatusRequest, RemoveContainerRequest, StopContainerRequest, VersionRequest,
    runtime_service_client::RuntimeServiceClient,
};
use model::{
    error_chain::ErrorChain,
    ids::{ContainerId, PodUid},
    order::Instance,
    presence::Runtime,
};
use node_rules::{InstanceState, ListedInstance, Observed, StopResult};
use tokio::time::timeout;
use tonic::{
    Response, Status,
    transport::{Channel, Endpoint},
};
use tracing::{Instrument, info_span};

pub(crate) use self::{
    error::CriError,
    starts::{next_event, start_of},
};
use crate::socket::Places;

/// How long a call may take that waits for nothing but the runtime (the kubelet's `runtimeRequestTimeout`).
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// How long the question "are you there?" may take.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// The kubelet's receive limit.
const MAX_MESSAGE: usize = 16 << 20;

const POD_UID: &str = "io.kubernetes.pod.uid";
const POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
const POD_NAME: &str = "io.kubernetes.pod.name";
const CONTAINER_NAME: &str = "io.kubernetes.container.name";
const RESTART_COUNT: &str = "io.kubernetes.container.restartCount";

/// A client of the runtime; clones share one connection.
#[derive(Clone)]
pub(crate) struct Cri {
    client: RuntimeServiceClient<Channel>,
}

// === impl Cri ===

impl Cri {
    /// A client that connects at its first call.
    pub(crate) fn new(places: Places) -> Self {
        let connector = tower::service_fn(move |_: http::Uri| {
            let places = places.clone();
            async move { places.connect().await.map(TokioIo::new) }
        });
        // The authority is what the kubelet sends since 1.31; no name is resolved.
        let channel =
            Endpoint::from_static("http://localhost").connect_with_connector_lazy(connector);
        Self {
            client: RuntimeServiceClient::new(channel).max_decoding_message_size(MAX_MESSAGE),
        }
    }

    /// The runtime's name and version.
    pub(crate) async fn version(&self) -> Result<Runtime, CriError> {
        let mut client = self.client.clone();
        let answer = call("Version", VERSION_TIMEOUT, async move {
            client.version(VersionRequest::default()).await
        })
        .await?;
        Ok(Runtime {
            name: answer.runtime_name,
            version: answer.runtime_version,
        })
    }

    /// The newest instance of an order's container.
    pub(crate) async fn observe(&self, instance: &Instance) -> Observed {
        match self.try_observe(instance).await {
            Ok(observed) => observed,
            Err(error) => Observed::Unavailable {
                message: ErrorChain(&error).to_string(),
            },
        }
    }

    /// Has the runtime stop an instance: politely, and after the timeout by force.
    pub(crate) async fn stop(&self, container_id: &ContainerId, grace: Duration) -> StopResult {
        let mut client = self.client.clone();
        let request = StopContainerRequest {
            container_id: container_id.to_string(),
            timeout: whole_seconds(grace),
        };
        let stopped = call("StopContainer", grace + CALL_TIMEOUT, async move {
            client.stop_container(request).await
        });
        match stopped.await {
            Ok(_) => StopResult::Stopped,
            Err(error) if error.is_not_found() => StopResult::NotFound,
            Err(error) => {
                let message = ErrorChain(&error).to_string();
                if error.is_runtime_away() {
                    StopResult::Unavailable { message }
                } else {
                    StopResult::Failed { message }
                }
            }
        }
    }

    /// Runs a command in a container. Dropping the future ends the command.
    pub(crate) async fn exec(
        &self,
        container_id: &ContainerId,
        command: &[String],
        limit: Duration,
    ) -> Result<ExecSyncResponse, CriError> {
        let mut client = self.client.clone();
        let request = ExecSyncRequest {
            container_id: container_id.to_string(),
            cmd: command.to_vec(),
            timeout: whole_seconds(limit),
        };
        call("ExecSync", limit + CALL_TIMEOUT, async move {
            client.exec_sync(request).await
        })
        .await
    }

    /// The address of a pod's newest sandbox; `None` where it has no network of its own.
    pub(crate) async fn pod_address(&self, pod: &PodUid) -> Result<Option<String>, CriError> {
        let sandboxes = self.list_sandboxes(pod).await?;
        let Some(newest) = sandboxes
            .into_iter()
            .max_by_key(|sandbox| sandbox.created_at)
        else {
            return Ok(None);
        };
        let mut client = self.client.clone();
        let request = PodSandboxStatusRequest {
            pod_sandbox_id: newest.id,
            verbose: false,
        };
        let answer = call("PodSandboxStatus", CALL_TIMEOUT, async move {
            client.pod_sandbox_status(request).await
        })
        .await?;
        Ok(answer
            .status
            .and_then(|status| status.network)
            .map(|network| network.ip)
            .filter(|ip| !ip.is_empty()))
    }

    /// Every instance of an order's container, dead ones included.
    pub(crate) async fn list_instances(
        &self,
        instance: &Instance,
    ) -> Result<Vec<ListedInstance>, CriError> {
        let mut client = self.client.clone();
        let filter = ContainerFilter {
            // All three: the uid alone comes from what a pod's author may have written (a static pod's annotation).
            label_selector: HashMap::from([
                (POD_UID.to_owned(), instance.pod_uid.to_string()),
                (POD_NAMESPACE.to_owned(), instance.namespace.to_string()),
                (POD_NAME.to_owned(), instance.pod.to_string()),
            ]),
            ..ContainerFilter::default()
        };
        let listed = call("ListContainers", CALL_TIMEOUT, async move {
            let request = ListContainersRequest {
                filter: Some(filter),
            };
            client.list_containers(request).await
        })
        .await?;
        Ok(own_instances(listed.containers, instance))
    }

    /// Where the runtime writes an instance's log; `None` where it writes none.
    pub(crate) async fn log_path(
        &self,
        container_id: &ContainerId,
    ) -> Result<Option<PathBuf>, CriError> {
        let mut client = self.client.clone();
        let request = ContainerStatusRequest {
            container_id: container_id.to_string(),
            verbose: false,
        };
        let answer = call("ContainerStatus", CALL_TIMEOUT, async move {
            client.container_status(request).await
        })
        .await?;
        let path = answer.status.map(|status| status.log_path);
        Ok(path.filter(|path| !path.is_empty()).map(PathBuf::from))
    }

    /// Removes an instance; one that is not there is removed.
    pub(crate) async fn remove(&self, container_id: &ContainerId) -> Result<(), CriError> {
        let mut client = self.client.clone();
        let request = RemoveContainerRequest {
            container_id: container_id.to_string(),
        };
        let removed = call("RemoveContainer", CALL_TIMEOUT, async move {
            client.remove_container(request).await
        });
        match removed.await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn try_observe(&self, instance: &Instance) -> Result<Observed, CriError> {
        if let Some(newest) = newest(self.list_instances(instance).await?) {
            return Ok(newest);
        }
        let sandboxes = self.list_sandboxes(&instance.pod_uid).await?;
        Ok(if sandboxes.is_empty() {
            Observed::NoPod
        } else {
            Observed::NoContainer
        })
    }

    async fn list_sandboxes(&self, pod: &PodUid) -> Result<Vec<PodSandbox>, CriError> {
        let mut client = self.client.clone();
        let filter = PodSandboxFilter {
            label_selector: HashMap::from([(POD_UID.to_owned(), pod.to_string())]),
            ..PodSandboxFilter::default()
        };
        let listed = call("ListPodSandbox", CALL_TIMEOUT, async move {
            let request = ListPodSandboxRequest {
                filter: Some(filter),
            };
            client.list_pod_sandbox(request).await
        });
        Ok(listed.await?.items)
    }
}

/// One call in a span of its own, such as `cri StopContainer`, with a limit.
///
/// The limit is ours and not in the request: a runtime would answer it in its own way.
async fn call<T>(
    method: &'static str,
    limit: Duration,
    answer: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, CriError> {
    let span = info_span!("cri", otel.name = format!("cri {method}"), method);
    async {
        match timeout(limit, answer).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(CriError::answered(method, status)),
            Err(_) => Err(CriError::Late { method, limit }),
        }
    }
    .instrument(span)
    .await
}

/// Those of a pod's containers that are instances of an order's container.
fn own_instances(containers: Vec<Container>, instance: &Instance) -> Vec<ListedInstance> {
    let is_own = |container: &Container| name_of(container) == Some(instance.container.as_str());
    let own = containers.into_iter().filter(is_own);
    own.map(listed_instance).collect()
}

/// The newest instance: the highest restart count, then the latest.
fn newest(listed: Vec<ListedInstance>) -> Option<Observed> {
    let newest = listed
        .into_iter()
        .max_by_key(|instance| (instance.restart_count, instance.created_at))?;
    Some(Observed::Newest {
        container_id: newest.container_id,
        restart_count: newest.restart_count,
        state: newest.state,
    })
}

fn listed_instance(container: Container) -> ListedInstance {
    let state = if container.state == ContainerState::ContainerExited as i32 {
        InstanceState::Exited
    } else {
        InstanceState::Alive
    };
    let restart_count = container
        .annotations
        .get(RESTART_COUNT)
        .and_then(|count| count.parse().ok())
        .unwrap_or_else(|| attempt_of(&container));
    ListedInstance {
        container_id: ContainerId::new(container.id),
        restart_count,
        created_at: container.created_at,
        state,
    }
}

fn name_of(container: &Container) -> Option<&str> {
    container
        .labels
        .get(CONTAINER_NAME)
        .map(String::as_str)
        .or_else(|| {
            container
                .metadata
                .as_ref()
                .map(|metadata| metadata.name.as_str())
        })
}

fn attempt_of(container: &Container) -> u32 {
    container
        .metadata
        .as_ref()
        .map_or(0, |metadata| metadata.attempt)
}

/// CRI counts whole seconds; a part of one is given in full.
fn whole_seconds(duration: Duration) -> i64 {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;

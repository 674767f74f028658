//! The client of the runtime.
//!
//! Owns the connection, the calls and the meaning of their answers. After a lost connection the next call opens
//! another.

use std::{collections::HashMap, path::PathBuf, time::Duration};

use hyper_util::rt::TokioIo;
use k8s_cri::v1::{
    Container, ContainerFilter, ContainerState as CriState, ContainerStatusRequest,
    ExecSyncRequest, ListContainersRequest, ListPodSandboxRequest, PodSandbox, PodSandboxFilter,
    PodSandboxStatusRequest, RemoveContainerRequest, StopContainerRequest, VersionRequest,
    runtime_service_client::RuntimeServiceClient,
};
use model::{
    ids::{ContainerId, PodUid},
    instances::{InstanceState, ListedInstance, Observed},
    order::Instance,
    presence::Runtime,
};
use tokio::time::timeout;
use tonic::{
    Response, Status,
    transport::{Channel, Endpoint},
};
use tracing::{Instrument, info_span};

use crate::{CriError, SocketCandidates, error::Result};

/// Limit of a call that waits only for the runtime (the kubelet's `runtimeRequestTimeout`).
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// Limit of the health check.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// The kubelet's receive limit.
const MAX_MESSAGE: usize = 16 << 20;

const POD_UID: &str = "io.kubernetes.pod.uid";
const POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
const POD_NAME: &str = "io.kubernetes.pod.name";
const CONTAINER_NAME: &str = "io.kubernetes.container.name";
const RESTART_COUNT: &str = "io.kubernetes.container.restartCount";

/// A client of the runtime; clones share one connection. Every method fails if a call does.
#[derive(Clone)]
pub struct Cri {
    pub(crate) client: Client,
}

type Client = RuntimeServiceClient<Channel>;

/// The result of a command that ran to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecOutput {
    pub exit_code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

// === impl Cri ===

impl Cri {
    /// Returns a client that connects at its first call.
    pub fn new(candidates: SocketCandidates) -> Self {
        let connector = tower::service_fn(move |_: http::Uri| {
            let candidates = candidates.clone();
            async move { candidates.connect().await.map(TokioIo::new) }
        });
        // The authority is what the kubelet sends since 1.31; no name is resolved.
        let channel =
            Endpoint::from_static("http://localhost").connect_with_connector_lazy(connector);
        Self {
            client: RuntimeServiceClient::new(channel).max_decoding_message_size(MAX_MESSAGE),
        }
    }

    pub async fn version(&self) -> Result<Runtime> {
        let request = VersionRequest::default();
        let answer = self.call("Version", VERSION_TIMEOUT, request, Client::version);
        answer.await.map(|answer| Runtime {
            name: answer.runtime_name,
            version: answer.runtime_version,
        })
    }

    /// Finds the newest instance of a container: the highest restart count, then the latest creation.
    ///
    /// Of `named` only pod and container name are used.
    pub async fn newest_instance(&self, named: &Instance) -> Result<Observed> {
        if let Some(newest) = newest(self.list_instances(named).await?) {
            return Ok(Observed::Newest(newest));
        }
        let sandboxes = self.list_sandboxes(Some(&named.pod_uid)).await?;
        Ok(if sandboxes.is_empty() {
            Observed::NoPod
        } else {
            Observed::NoContainer
        })
    }

    /// Lists every instance of a container, including those that have exited.
    ///
    /// Of `named` only pod and container name are used.
    pub async fn list_instances(&self, named: &Instance) -> Result<Vec<ListedInstance>> {
        let filter = ContainerFilter {
            // All three, because the author of a static pod can choose its uid by an annotation.
            label_selector: HashMap::from([
                (POD_UID.to_owned(), named.pod_uid.to_string()),
                (POD_NAMESPACE.to_owned(), named.namespace.to_string()),
                (POD_NAME.to_owned(), named.pod.to_string()),
            ]),
            ..ContainerFilter::default()
        };
        let containers = self.list_pod_containers(Some(filter)).await?;
        Ok(own_instances(containers, named))
    }

    /// Stops an instance: with its stop signal, and after `grace` by force. After an error it may have stopped nevertheless.
    pub async fn stop(&self, container_id: &ContainerId, grace: Duration) -> Result<()> {
        let request = StopContainerRequest {
            container_id: container_id.to_string(),
            timeout: whole_seconds(grace),
        };
        let limit = grace + CALL_TIMEOUT;
        let stopped = self.call("StopContainer", limit, request, Client::stop_container);
        stopped.await.map(drop)
    }

    /// Runs a command in a container. Dropping the future ends the command; its failure is in its exit code.
    pub async fn exec(
        &self,
        container_id: &ContainerId,
        command: &[String],
        limit: Duration,
    ) -> Result<ExecOutput> {
        let request = ExecSyncRequest {
            container_id: container_id.to_string(),
            cmd: command.to_vec(),
            timeout: whole_seconds(limit),
        };
        let limit = limit + CALL_TIMEOUT;
        let output = self.call("ExecSync", limit, request, Client::exec_sync);
        output.await.map(|output| ExecOutput {
            exit_code: output.exit_code,
            stdout: output.stdout,
            stderr: output.stderr,
        })
    }

    /// Returns the address of a pod's newest sandbox; `None` if it uses the node's network.
    pub async fn pod_address(&self, pod: &PodUid) -> Result<Option<String>> {
        let sandboxes = self.list_sandboxes(Some(pod)).await?.into_iter();
        let Some(newest) = sandboxes.max_by_key(|sandbox| sandbox.created_at) else {
            return Ok(None);
        };
        let request = PodSandboxStatusRequest {
            pod_sandbox_id: newest.id,
            verbose: false,
        };
        let call = Client::pod_sandbox_status;
        let answer = self.call("PodSandboxStatus", CALL_TIMEOUT, request, call);
        let network = answer.await?.status.and_then(|status| status.network);
        let address = network.map(|network| network.ip);
        Ok(address.filter(|ip| !ip.is_empty()))
    }

    /// Returns the path of an instance's log; `None` if the runtime writes none.
    pub async fn log_path(&self, container_id: &ContainerId) -> Result<Option<PathBuf>> {
        let request = ContainerStatusRequest {
            container_id: container_id.to_string(),
            verbose: false,
        };
        let call = Client::container_status;
        let answer = self.call("ContainerStatus", CALL_TIMEOUT, request, call);
        let path = answer.await?.status.map(|status| status.log_path);
        Ok(path.filter(|path| !path.is_empty()).map(PathBuf::from))
    }

    /// Removes an instance if it exists.
    pub async fn remove(&self, container_id: &ContainerId) -> Result<()> {
        let request = RemoveContainerRequest {
            container_id: container_id.to_string(),
        };
        let call = Client::remove_container;
        let removed = self.call("RemoveContainer", CALL_TIMEOUT, request, call);
        match removed.await {
            Err(error) if error.is_not_found() => Ok(()),
            removed => removed.map(drop),
        }
    }

    /// Lists the sandboxes of one pod, or of all.
    pub(crate) async fn list_sandboxes(&self, pod: Option<&PodUid>) -> Result<Vec<PodSandbox>> {
        let filter = pod.map(|pod| PodSandboxFilter {
            label_selector: HashMap::from([(POD_UID.to_owned(), pod.to_string())]),
            ..PodSandboxFilter::default()
        });
        let request = ListPodSandboxRequest { filter };
        let call = Client::list_pod_sandbox;
        let listed = self.call("ListPodSandbox", CALL_TIMEOUT, request, call);
        Ok(listed.await?.items)
    }

    pub(crate) async fn list_pod_containers(
        &self,
        filter: Option<ContainerFilter>,
    ) -> Result<Vec<Container>> {
        let request = ListContainersRequest { filter };
        let call = Client::list_containers;
        let listed = self.call("ListContainers", CALL_TIMEOUT, request, call);
        Ok(listed.await?.containers)
    }

    /// Makes one call in its own span, such as `cri StopContainer`, and limits its time.
    ///
    /// The limit is not sent as a gRPC deadline, because runtimes answer expired deadlines in different ways.
    async fn call<R, A>(
        &self,
        method: &'static str,
        limit: Duration,
        request: R,
        call: impl AsyncFnOnce(&mut Client, R) -> Result<Response<A>, Status>,
    ) -> Result<A> {
        let span = info_span!("cri", otel.name = format!("cri {method}"), method);
        let mut client = self.client.clone();
        let answer = timeout(limit, call(&mut client, request));
        match answer.instrument(span).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(CriError::answered(method, status)),
            Err(_) => Err(CriError::TimedOut { method, limit }),
        }
    }
}

/// Selects the instances of a container among all containers of its pod.
fn own_instances(containers: Vec<Container>, named: &Instance) -> Vec<ListedInstance> {
    let is_own = |container: &Container| name_of(container) == Some(named.container.as_str());
    let own = containers.into_iter().filter(is_own);
    own.map(listed_instance).collect()
}

fn newest(instances: Vec<ListedInstance>) -> Option<ListedInstance> {
    let order_of = |instance: &ListedInstance| (instance.restart_count, instance.created_at);
    instances.into_iter().max_by_key(order_of)
}

fn listed_instance(container: Container) -> ListedInstance {
    let restart_count = container.annotations.get(RESTART_COUNT);
    let restart_count = restart_count.and_then(|count| count.parse().ok());
    let attempt = || container.metadata.as_ref().map_or(0, |own| own.attempt);
    ListedInstance {
        restart_count: restart_count.unwrap_or_else(attempt),
        created_at: container.created_at,
        state: if container.state == CriState::ContainerExited as i32 {
            InstanceState::Exited
        } else {
            InstanceState::Alive
        },
        container_id: ContainerId::new(container.id),
    }
}

pub(crate) fn name_of(container: &Container) -> Option<&str> {
    let label = container.labels.get(CONTAINER_NAME).map(String::as_str);
    label.or_else(|| Some(container.metadata.as_ref()?.name.as_str()))
}

/// CRI counts whole seconds: a fraction is rounded up.
fn whole_seconds(duration: Duration) -> i64 {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;

//! Reads of the cluster for a review.
//!
//! Rights: get pods, get nodes, in all namespaces. The pod is read from the API server and not from a cache: an old
//! status must not refuse a pod that has just started. The scheduler's answer is used for warnings only.

use std::time::Duration;

use admission_rules::Facts;
use bus::Bus;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client, ResourceExt, core::PartialObjectMeta};
use model::{
    error_chain::ErrorChain,
    ids::{Namespace, NodeName, PodKey, PodName},
    labels,
    presence::{LastSeen, PresenceAnswer, PresenceQuestion},
};
use tokio::time::timeout;
use tracing::debug;

use crate::call_error::{CallError, failed_to};

/// The longest wait for the scheduler.
const ASK_WITHIN: Duration = Duration::from_millis(100);

/// A node that was seen within this time exists; otherwise the API server is asked.
const SURELY_THERE: Duration = Duration::from_secs(30);

/// Deadline of all reads of a review. It is shorter than the API server's ten seconds (`timeoutSeconds` in
/// k8s/base/admission.yaml), so that the user gets an error that names the slow read.
const READ_WITHIN: Duration = Duration::from_secs(8);

#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    bus: Bus,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("failed to read the pod and its node within {READ_WITHIN:?}")]
    TimedOut,
}

// === impl Cluster ===

impl Cluster {
    pub(crate) fn new(client: Client, bus: Bus) -> Self {
        Self { client, bus }
    }

    pub(crate) async fn fetch_facts(&self, ns: &str, pod: &str) -> Result<Facts, ReadError> {
        let facts = timeout(READ_WITHIN, self.read_facts(ns, pod)).await;
        Ok(facts.map_err(|_| ReadError::TimedOut)??)
    }

    async fn read_facts(&self, ns: &str, pod_name: &str) -> Result<Facts, CallError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), ns);
        let pod = pods.get_opt(pod_name).await;
        let pod = pod.map_err(failed_to("read", "pod"))?;
        let spec = pod.as_ref().and_then(|pod| pod.spec.as_ref());
        let Some(node) = spec.and_then(|spec| spec.node_name.clone()) else {
            return Ok(Facts {
                pod,
                ..Facts::default()
            });
        };
        let answer = self.ask_scheduler(&node, ns, pod_name).await;
        let last_seen = answer.as_ref().map(|answer| answer.last_seen);
        // The node of a virtual kubelet has no node-executor, so it is never seen.
        let (node_exists, is_node_virtual) = if last_seen.is_some_and(is_recent) {
            (true, false)
        } else {
            let nodes: Api<Node> = Api::all(self.client.clone());
            let found = nodes.get_metadata_opt(&node).await;
            let found = found.map_err(failed_to("read", "node"))?;
            (found.is_some(), found.as_ref().is_some_and(is_virtual))
        };
        Ok(Facts {
            pod,
            node_exists: Some(node_exists),
            is_node_virtual,
            node_last_seen: last_seen,
            other_active: answer.map(|answer| answer.active_crrs).unwrap_or_default(),
        })
    }

    /// `None` without an answer in time.
    async fn ask_scheduler(&self, node: &str, ns: &str, pod: &str) -> Option<PresenceAnswer> {
        let question = PresenceQuestion {
            node: NodeName::from(node),
            pod: Some(PodKey {
                namespace: Namespace::from(ns),
                name: PodName::from(pod),
            }),
        };
        let answer = self.bus.ask_presence(&question, ASK_WITHIN).await;
        if let Err(error) = &answer {
            debug!(error = %ErrorChain(error), "The crr-scheduler did not answer");
        }
        answer.ok()
    }
}

fn is_virtual(node: &PartialObjectMeta<Node>) -> bool {
    let node_type = node.labels().get(labels::NODE_TYPE);
    node_type.is_some_and(|node_type| node_type == labels::NODE_TYPE_VIRTUAL)
}

fn is_recent(last_seen: LastSeen) -> bool {
    matches!(last_seen, LastSeen::Ago(ago) if ago < SURELY_THERE)
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::pending};

    use axum::http;
    use kube::client::Body;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_api_server_is_told_of_before_the_webhook_times_out() {
        let server = |_: http::Request<Body>| pending::<Result<http::Response<Body>, Infallible>>();
        let client = Client::new(tower::service_fn(server), "shop");
        let args = bus::Args::at("nats://127.0.0.1:1");
        let bus = Bus::connect(&args, "admission").await.unwrap();
        let cluster = Cluster::new(client, bus);
        let start = Instant::now();
        let facts = cluster.fetch_facts("shop", "web").await;
        assert!(matches!(facts, Err(ReadError::TimedOut)));
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}

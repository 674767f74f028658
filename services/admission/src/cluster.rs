//! What a review reads of the cluster.
//!
//! Rights: get pods, get nodes, in all namespaces. The pod is read from the API server itself and not from a cache: one
//! that has just started must not be refused by an old status. What only warns is asked of the scheduler.

use std::time::Duration;

use admission_rules::Facts;
use bus::Bus;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client, ResourceExt, core::PartialObjectMeta};
use model::{
    error_chain::ErrorChain,
    ids::{Namespace, NodeName, PodKey, PodName},
    labels,
    presence::{Answer, LastSeen, Question},
};
use tokio::time::timeout;
use tracing::debug;

/// A scheduler that does not answer within this time is not waited for: what it knows is only for warnings.
const ASK_WITHIN: Duration = Duration::from_millis(100);

/// A node that gave a sign of life within this time exists; otherwise the API server is asked.
const SURELY_THERE: Duration = Duration::from_secs(30);

/// All reads of a review: the API server waits ten seconds for the answer (`timeoutSeconds` in
/// k8s/base/admission.yaml), and with ours the user is told what it was that took so long.
const READ_WITHIN: Duration = Duration::from_secs(8);

#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    bus: Bus,
}

/// Why the facts could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("failed to read the {what}")]
    Failed {
        what: &'static str,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("failed to read the pod and its node within {READ_WITHIN:?}")]
    Slow,
}

// === impl Cluster ===

impl Cluster {
    pub(crate) fn new(client: Client, bus: Bus) -> Self {
        Self { client, bus }
    }

    /// Reads what the review of a creation needs.
    pub(crate) async fn fetch_facts(
        &self,
        namespace: &str,
        pod: &str,
        trace_parent: Option<String>,
    ) -> Result<Facts, ReadError> {
        let facts = self.read_facts(namespace, pod, trace_parent);
        let facts = timeout(READ_WITHIN, facts).await;
        facts.unwrap_or(Err(ReadError::Slow))
    }

    async fn read_facts(
        &self,
        namespace: &str,
        pod: &str,
        trace_parent: Option<String>,
    ) -> Result<Facts, ReadError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let found = pods.get_opt(pod).await.map_err(failed("pod"))?;
        let spec = found.as_ref().and_then(|pod| pod.spec.as_ref());
        let node = spec.and_then(|spec| spec.node_name.as_deref());
        let answer = self.ask_leader(node, namespace, pod).await;
        let is_alive = matches!(&answer, Some(answer) if is_recent(answer.last_seen));
        let (node_exists, is_node_virtual) = match node {
            // A virtual kubelet's node has no executor that could give a sign of life.
            Some(_) if is_alive => (Some(true), false),
            Some(node) => {
                let found = self.fetch_node(node).await?;
                (
                    Some(found.is_some()),
                    found.as_ref().is_some_and(is_virtual),
                )
            }
            None => (None, false),
        };
        let (node_last_seen, other_active) = answer
            .map(|answer| (answer.last_seen, answer.active_crrs))
            .unzip();
        Ok(Facts {
            pod: found,
            node_exists,
            is_node_virtual,
            node_last_seen,
            other_active: other_active.unwrap_or_default(),
            trace_parent,
            requested_by: None,
        })
    }

    async fn fetch_node(&self, node: &str) -> Result<Option<PartialObjectMeta<Node>>, ReadError> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.get_metadata_opt(node).await.map_err(failed("node"))
    }

    /// Fails open: without an answer there is no warning.
    async fn ask_leader(&self, node: Option<&str>, namespace: &str, pod: &str) -> Option<Answer> {
        let question = Question {
            node: NodeName::from(node?),
            pod: Some(PodKey {
                namespace: Namespace::from(namespace),
                name: PodName::from(pod),
            }),
        };
        let answer = self.bus.ask_leader(&question, ASK_WITHIN).await;
        answer
            .inspect_err(
                |error| debug!(error = %ErrorChain(error), "The crr-scheduler did not answer"),
            )
            .ok()
    }
}

fn is_virtual(node: &PartialObjectMeta<Node>) -> bool {
    let word = node.labels().get(labels::NODE_TYPE);
    word.is_some_and(|word| word == labels::NODE_TYPE_VIRTUAL)
}

fn is_recent(last_seen: LastSeen) -> bool {
    matches!(last_seen, LastSeen::Ago(ago) if ago < SURELY_THERE)
}

fn failed(what: &'static str) -> impl FnOnce(kube::Error) -> ReadError {
    move |source| ReadError::Failed {
        what,
        source: Box::new(source),
    }
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
        let facts = cluster.fetch_facts("shop", "web", None).await;
        assert!(matches!(facts, Err(ReadError::Slow)));
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}

//! What a review reads of the cluster.
//!
//! Rights: get pods, get nodes, list containerrecreaterequests, in all namespaces. Reads go to the API server
//! itself and not to a cache: a pod that has just started must not be refused by an old status.

use std::time::Duration;

use admission_rules::Facts;
use bus::Bus;
use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client, ResourceExt, api::ListParams};
use model::{ids::NodeName, labels, presence::LastSeen};
use tracing::debug;

/// A scheduler that does not answer within this time is not waited for: presence is only a warning.
const ASK_WITHIN: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    bus: Bus,
}

/// Why the facts could not be had.
#[derive(Debug, thiserror::Error)]
#[error("failed to read the {what}")]
pub(crate) struct ReadError {
    what: &'static str,
    #[source]
    source: Box<kube::Error>,
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
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let pod = pods.get_opt(pod).await.map_err(failed("pod"))?;
        let node = pod
            .as_ref()
            .and_then(|pod| pod.spec.as_ref()?.node_name.clone());
        let (node_exists, node_last_seen, other_active) = tokio::join!(
            self.fetch_node_exists(node.as_deref()),
            self.ask_last_seen(node.as_deref()),
            self.fetch_other_active(namespace, pod.as_ref()),
        );
        let node_exists = node_exists?;
        Ok(Facts {
            pod,
            node_exists,
            node_last_seen,
            other_active,
            trace_parent,
            requested_by: None,
        })
    }

    async fn fetch_node_exists(&self, node: Option<&str>) -> Result<Option<bool>, ReadError> {
        let Some(node) = node else { return Ok(None) };
        let nodes: Api<Node> = Api::all(self.client.clone());
        let found = nodes.get_metadata_opt(node).await.map_err(failed("node"))?;
        Ok(Some(found.is_some()))
    }

    /// Fails open: without an answer there is no warning.
    async fn ask_last_seen(&self, node: Option<&str>) -> Option<LastSeen> {
        let answer = self
            .bus
            .ask_last_seen(&NodeName::from(node?), ASK_WITHIN)
            .await;
        answer
            .inspect_err(|error| debug!(%error, "Presence is not known"))
            .ok()
    }

    /// Fails open as well: it is for a warning.
    async fn fetch_other_active(&self, namespace: &str, pod: Option<&Pod>) -> Vec<String> {
        let Some(uid) = pod.and_then(ResourceExt::uid) else {
            return Vec::new();
        };
        let crrs: Api<ContainerRecreateRequest> = Api::namespaced(self.client.clone(), namespace);
        let selector = format!(
            "{}={uid},{}={}",
            labels::CRR_POD_UID,
            labels::CRR_ACTIVE,
            labels::CRR_ACTIVE_TRUE
        );
        // From the API server's cache (resourceVersion 0): no load on etcd for a warning.
        let parameters = ListParams::default().labels(&selector).match_any();
        match crrs.list_metadata(&parameters).await {
            Ok(list) => list.iter().map(ResourceExt::name_any).collect(),
            Err(error) => {
                debug!(%error, "Other requests of the pod are not known");
                Vec::new()
            }
        }
    }
}

fn failed(what: &'static str) -> impl FnOnce(kube::Error) -> ReadError {
    move |source| ReadError {
        what,
        source: Box::new(source),
    }
}

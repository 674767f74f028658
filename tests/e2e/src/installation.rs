//! Podwright as it is deployed: which pods its services are, and what can be done to them.

use anyhow::{Context, Result};
use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment},
    coordination::v1::Lease,
    core::v1::Pod,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::wait::{Look, PATIENCE, wait_for};

/// Where the manifests put the services.
pub const NAMESPACE: &str = "podwright-system";

/// The services.
pub const SERVICES: [&str; 4] = [
    "admission",
    "barrier-manager",
    "crr-scheduler",
    "node-executor",
];

/// Those of which one replica leads, as their leases are named.
const LED: [&str; 2] = ["barrier-manager", "crr-scheduler"];

/// The deployed services.
#[derive(Clone)]
pub struct Installation {
    client: Client,
}

// === impl Installation ===

impl Installation {
    pub fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
        }
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// The pods of a service, as its manifest labels them.
    pub async fn pods_of(&self, service: &str) -> Result<Vec<Pod>> {
        let labelled = ListParams::default().labels(&format!("app.kubernetes.io/name={service}"));
        Ok(self.pods().list(&labelled).await?.items)
    }

    /// The pod of a service that leads.
    pub async fn leader(&self, service: &str) -> Result<String> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), NAMESPACE);
        let lease = leases.get(service).await?;
        let holder = lease.spec.and_then(|spec| spec.holder_identity);
        holder
            .filter(|name| !name.is_empty())
            .with_context(|| format!("no {service} leads"))
    }

    /// The node-executor's pod on a node.
    pub async fn executor_on(&self, node: &str) -> Result<String> {
        let pods = self.pods_of("node-executor").await?;
        let here = |pod: &&Pod| {
            let spec = pod.spec.as_ref();
            spec.is_some_and(|spec| spec.node_name.as_deref() == Some(node))
        };
        let pod = pods.iter().find(here);
        Ok(pod
            .with_context(|| format!("no node-executor on {node}"))?
            .name_any())
    }

    /// Ends a pod at once, without warning it.
    pub async fn kill_pod(&self, name: &str) -> Result<()> {
        let at_once = DeleteParams {
            grace_period_seconds: Some(0),
            ..DeleteParams::default()
        };
        let killed = self.pods().delete(name, &at_once).await;
        killed
            .map(drop)
            .with_context(|| format!("failed to kill pod {name}"))
    }

    /// Sets how many NATS servers there are, and waits until it is so.
    pub async fn scale_nats(&self, replicas: i32) -> Result<()> {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), NAMESPACE);
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        deployments
            .patch("nats", &PatchParams::default(), &patch)
            .await?;
        self.wait_pods("nats", usize::try_from(replicas)?).await
    }

    /// Takes the node-executor off all nodes, or puts it back, and waits until it is so.
    pub async fn run_executors(&self, wanted: bool) -> Result<()> {
        let sets: Api<DaemonSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        // A label that no node has.
        let nowhere = if wanted { Value::Null } else { json!("none") };
        let selector = json!({ "podwright.dev/nowhere": nowhere });
        let patch = json!({ "spec": { "template": { "spec": { "nodeSelector": selector } } } });
        let set = sets
            .patch(
                "node-executor",
                &PatchParams::default(),
                &Patch::Merge(patch),
            )
            .await?;
        let generation = set.metadata.generation;
        let set = wait_for("the DaemonSet to be looked at", PATIENCE, async || {
            let set = sets.get("node-executor").await?;
            let status = set.status.clone().unwrap_or_default();
            Ok(if status.observed_generation >= generation {
                Look::Found(status)
            } else {
                Look::NotYet(format!("generation {:?}", status.observed_generation))
            })
        })
        .await?;
        let count = usize::try_from(set.desired_number_scheduled)?;
        self.wait_pods("node-executor", count).await
    }

    /// Waits until everything of Podwright is as many as it should be, and ready.
    pub async fn wait_whole(&self) -> Result<()> {
        for service in SERVICES.iter().chain(&["nats"]) {
            wait_for(&format!("{service} to be whole"), PATIENCE, async || {
                let pods = self.pods_of(service).await?;
                let so = !pods.is_empty() && pods.iter().all(is_ready);
                Ok(Look::is(so, describe(&pods)))
            })
            .await?;
        }
        for service in LED {
            wait_for("a leader that is alive", PATIENCE, async || {
                let leader = self.leader(service).await?;
                let alive = self.pods().get_opt(&leader).await?.is_some();
                Ok(Look::is(alive, format!("{leader} leads, and is gone")))
            })
            .await?;
        }
        Ok(())
    }

    async fn wait_pods(&self, service: &str, count: usize) -> Result<()> {
        wait_for(
            &format!("{count} pods of {service}"),
            PATIENCE,
            async || {
                let pods = self.pods_of(service).await?;
                let so = pods.len() == count && pods.iter().all(is_ready);
                Ok(Look::is(so, describe(&pods)))
            },
        )
        .await
    }
}

fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let statuses = status.and_then(|status| status.container_statuses.as_ref());
    pod.metadata.deletion_timestamp.is_none()
        && statuses.is_some_and(|statuses| statuses.iter().all(|status| status.ready))
}

fn describe(pods: &[Pod]) -> String {
    let each = pods.iter().map(|pod| {
        let word = if is_ready(pod) { "ready" } else { "not ready" };
        format!("{} {word}", pod.name_any())
    });
    each.collect::<Vec<_>>().join(", ")
}

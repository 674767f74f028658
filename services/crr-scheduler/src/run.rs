//! Every task and every port of the crr-scheduler.

use std::time::Duration;

use anyhow::{Context, bail};
use api_client::Retries;
use bus::Bus;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use lease::{Elector, Leadership, Timing};
use service_kit::{Kit, Shutdown, StateCell, clock};

use crate::{Args, cluster::Cluster, driver::Driver, gates::open_gates, metrics::Metrics};

/// The name of the leader's Lease.
const LEASE: &str = "crr-scheduler";

/// How long the end may take: the lease's release is one request.
const DRAIN: Duration = Duration::from_secs(5);

/// Runs until a signal or a task's end.
///
/// # Errors
/// No Kubernetes configuration, unusable bus settings, or a task that failed.
pub async fn run(args: Args, mut kit: Kit) -> anyhow::Result<()> {
    let client = api_client::infer("podwright-crr-scheduler", Retries::None)
        .await
        .context("failed to find the API server")?;
    let bus = Bus::connect(&args.bus, "crr-scheduler")
        .await
        .context("failed to set the bus up")?;
    let metrics = Metrics::register(kit.admin.registry());
    let state = kit.admin.state();
    kit.admin.readiness().set("started", true);

    let leases: Api<Lease> = Api::namespaced(client.clone(), &args.namespace);
    let elector = Elector::new(leases, LEASE, &args.identity, Timing::default(), clock::now);
    let leadership = elector.leadership();
    let leader = Leader {
        cluster: Cluster::new(client, args.streaming_lists),
        bus,
        metrics,
        state,
    };
    let shutdown = kit.shutdown.clone();

    kit.tasks.add("admin", kit.admin.serve(shutdown.clone()));
    kit.tasks.add("elector", {
        let shutdown = shutdown.clone();
        async move {
            elector.run(async move { shutdown.wait().await }).await;
            Ok(())
        }
    });
    kit.tasks
        .add("leader", leader.run(leadership, shutdown.clone()));
    kit.tasks.run_to_end(DRAIN).await
}

/// What a leader works with.
#[derive(Clone)]
struct Leader {
    cluster: Cluster,
    bus: Bus,
    metrics: Metrics,
    state: StateCell,
}

// === impl Leader ===

impl Leader {
    /// Works while this replica leads.
    async fn run(self, mut leadership: Leadership, shutdown: Shutdown) -> anyhow::Result<()> {
        let work = || self.clone().drive();
        let lost = || self.state.store(serde_json::json!({ "leads": false }));
        tokio::select! {
            () = shutdown.wait() => Ok(()),
            end = leadership.lead(work, lost) => end,
        }
    }

    async fn drive(self) -> anyhow::Result<()> {
        let gates = open_gates(self.cluster.clone());
        let driver = Driver::new(self.cluster, self.bus, self.metrics, self.state);
        tokio::select! {
            end = driver.run() => end.context("the driver failed"),
            () = gates => bail!("the watch of gated pods has ended"),
        }
    }
}

//! Clients of the crr-scheduler, and the work of its leader; the tasks are those of `leader::serve`.

use anyhow::{Context, bail};
use api_client::{RequestPolicy, Retries};
use bus::Bus;
use service_kit::{Kit, StateCell};

use crate::{
    Args, cluster::Cluster, metrics::Metrics, readiness_gates::open_gates, scheduler::Scheduler,
};

/// The name of the service, of its Lease and of its connections.
const SERVICE: &str = "crr-scheduler";

/// The machine has its own retries. At most 16 concurrent requests: a burst must not overload the API server.
const POLICY: RequestPolicy = RequestPolicy {
    retries: Retries::None,
    at_once: Some(16),
};

/// Runs until a signal or a task's end.
///
/// # Errors
/// No Kubernetes configuration, unusable bus settings, or a task that failed.
pub async fn run(args: Args, mut kit: Kit) -> anyhow::Result<()> {
    let client = api_client::infer(SERVICE, POLICY)
        .await
        .context("failed to find the API server")?;
    let bus = Bus::connect(&args.bus, SERVICE)
        .await
        .context("failed to set the bus up")?;
    let cluster = Cluster::new(client, args.streaming_lists);
    let metrics = Metrics::register(kit.admin.registry());
    let state = kit.admin.state();
    let work = move || drive(cluster.clone(), bus.clone(), metrics.clone(), state.clone());
    leader::serve(&args.leader, SERVICE, kit, work).await
}

async fn drive(
    cluster: Cluster,
    bus: Bus,
    metrics: Metrics,
    state: StateCell,
) -> anyhow::Result<()> {
    let gates = open_gates(cluster.clone());
    let scheduler = Scheduler::new(cluster, bus, metrics, state);
    tokio::select! {
        end = scheduler.run() => end.context("the scheduler failed"),
        () = gates => bail!("the watch of gated pods has ended"),
    }
}

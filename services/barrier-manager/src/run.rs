//! Clients of the barrier-manager, and the work of its leader; the tasks are those of `leader::serve`.

use std::time::Duration;

use anyhow::Context;
use api_client::{RequestPolicy, Retries};
use bus::Bus;
use service_kit::Kit;

use crate::{args::Args, cluster::Cluster, manager::Manager, metrics::Metrics};

/// The name of the service, of its Lease and of its connections.
const SERVICE: &str = "barrier-manager";

/// The machine has its own retries. At most 32 concurrent requests: enough for fifty pods at once, without a flood of
/// the API server.
const POLICY: RequestPolicy = RequestPolicy {
    retries: Retries::None,
    at_once: Some(32),
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
    let stuck_after = Duration::from_secs(args.stuck_after_seconds.get().into());
    let work = move || {
        let manager = Manager::new(cluster.clone(), metrics.clone(), state.clone(), stuck_after);
        let bus = bus.clone();
        async move { manager.run(&bus).await.context("the manager failed") }
    };
    leader::serve(&args.leader, SERVICE, kit, work).await
}

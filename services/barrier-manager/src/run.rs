//! Clients of the barrier-manager, and the work of its leader; the tasks are those of `leader::serve`.

use anyhow::Context;
use api_client::{RequestPolicy, Retries};
use bus::Bus;
use service_kit::Kit;

use crate::{Args, cluster::Cluster, driver::Driver, metrics::Metrics};

/// The name of the service, of its Lease and of its connections.
const SERVICE: &str = "barrier-manager";

/// The driver has its own retries. At most 32 concurrent requests: enough for fifty pods at once, without a flood of
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
    let (state, stuck_after) = (kit.admin.state(), args.stuck_after());
    let work = move || {
        let driver = Driver::new(cluster.clone(), metrics.clone(), state.clone(), stuck_after);
        let bus = bus.clone();
        async move { driver.run(&bus).await.context("the driver failed") }
    };
    leader::serve(&args.leader, SERVICE, kit, work).await
}

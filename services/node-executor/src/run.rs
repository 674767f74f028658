//! Every task and every port of the node-executor.

use std::{thread::available_parallelism, time::Duration};

use anyhow::Context;
use bus::Bus;
use model::{ids::NodeName, presence::Runtime};
use node_rules::Settings;
use service_kit::{Kit, Readiness};
use tokio::sync::{mpsc, watch};

use crate::{
    Args,
    cri::Cri,
    driver::{Driver, Report},
    drops::Dropper,
    health,
    metrics::Metrics,
    orders,
    outside::Node,
    presence::{self, Teller},
    socket::Places,
    starts::StartTeller,
    store::Store,
};

/// So many orders may wait for the driver before the bus has to.
const INCOMING: usize = 1024;

/// Runs until a signal or a task's end.
///
/// # Errors
/// The journal is unusable, bus settings are, or a task failed.
pub async fn run(args: Args, mut kit: Kit) -> anyhow::Result<()> {
    let name = NodeName::new(&args.node_name);
    let store = Store::open(&args.data_dir)
        .await
        .context("failed to open the journal")?;
    let bus = Bus::connect(&args.bus, &format!("node-executor/{name}"))
        .await
        .context("failed to set the bus up")?;
    let cri = Cri::new(Places::new(args.cri_socket.as_deref()));
    let shutdown = kit.shutdown.clone();
    let readiness = nothing_ready(kit.admin.readiness());

    let (runtime_tx, runtime) = watch::channel(None);
    let (held_tx, orders_held) = watch::channel(0);
    let (incoming_tx, incoming) = mpsc::channel(INCOMING);
    let node = Node {
        name: name.clone(),
        cri: cri.clone(),
        bus: bus.clone(),
    };
    let metrics = Metrics::register(kit.admin.registry());
    let report = Report {
        node: name.clone(),
        metrics: metrics.clone(),
        state: kit.admin.state(),
        readiness: readiness.clone(),
        orders_held: held_tx,
        runtime: runtime.clone(),
    };
    let starts = StartTeller::new(node.clone(), runtime.clone(), metrics.clone());
    let driver = Driver::new(settings(&args), store, node, report);
    let dropper = Dropper::new(cri.clone(), metrics, driver.unfinished());
    let boot_id = presence::load_boot_id().await;
    let teller = Teller {
        bus: bus.clone(),
        node: name.clone(),
        boot_id: boot_id.context("failed to read the boot id")?,
        runtime,
        orders_held,
    };

    let ending = shutdown.clone();
    kit.tasks.add("driver", async move {
        driver
            .run(incoming, ending)
            .await
            .context("the driver failed")
    });
    let orders = orders::consume_orders(bus.clone(), name, incoming_tx, dropper, shutdown.clone());
    kit.tasks.add("orders", async {
        orders.await.context("failed to take orders")
    });
    watch_health(&mut kit, cri, bus, runtime_tx, readiness);
    let presence = teller.publish_presence(shutdown.clone());
    kit.tasks.add("presence", ends_well(presence));
    let starts = starts.publish_starts(shutdown.clone());
    kit.tasks.add("starts", ends_well(starts));
    kit.tasks.add("admin", kit.admin.serve(shutdown.clone()));
    kit.tasks
        .run_to_end(Duration::from_secs(args.drain_seconds.into()))
        .await
}

/// Adds the tasks that look whether runtime and bus are there.
fn watch_health(
    kit: &mut Kit,
    cri: Cri,
    bus: Bus,
    runtime: watch::Sender<Option<Runtime>>,
    readiness: Readiness,
) {
    let shutdown = kit.shutdown.clone();
    let runtime = health::watch_runtime(cri, runtime, readiness.clone(), shutdown.clone());
    kit.tasks.add("runtime", ends_well(runtime));
    let bus = health::watch_bus(bus, readiness, shutdown);
    kit.tasks.add("bus", ends_well(bus));
}

/// Names what the node has to have before it is ready.
fn nothing_ready(readiness: Readiness) -> Readiness {
    for condition in ["journal", "runtime", "bus"] {
        readiness.set(condition, false);
    }
    readiness
}

async fn ends_well(task: impl Future<Output = ()>) -> anyhow::Result<()> {
    task.await;
    Ok(())
}

fn settings(args: &Args) -> Settings {
    let processors = available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    Settings {
        max_concurrent_stops: args
            .max_concurrent_stops
            .map_or(processors, std::num::NonZeroUsize::get),
        retention: Duration::from_secs(u64::from(args.retention_hours) * 3600),
        ..Settings::default()
    }
}

//! Every part of the node-executor, and what it gets from the others.

use std::time::Duration;

use anyhow::Context;
use bus::Bus;
use cri::{Cri, SocketCandidates};
use model::ids::NodeName;
use service_kit::Kit;
use tokio::sync::watch;

use crate::{
    args::Args,
    infallible,
    launches::StartPublisher,
    metrics::Metrics,
    orders::{self, Journal, RealNodeIo, Report},
    presence::{self, PresencePublisher},
    runtime,
};

/// Runs until a signal or a task's end.
///
/// # Errors
/// The journal or the bus settings are unusable, or a task failed.
pub async fn run(args: Args, mut kit: Kit) -> anyhow::Result<()> {
    let node = NodeName::new(&args.node_name);
    let journal = Journal::open(&args.data_dir).await;
    let journal = journal.context("failed to open the journal")?;
    let bus = Bus::connect(&args.bus, &format!("node-executor/{node}")).await;
    let bus = bus.context("failed to set the bus up")?;
    let boot_id = presence::load_boot_id().await;
    let boot_id = boot_id.context("failed to read the boot id")?;
    let cri = Cri::new(SocketCandidates::new(args.cri_socket.as_deref()));
    let metrics = Metrics::register(kit.admin.registry());
    let readiness = kit.admin.readiness();
    for condition in ["journal", "runtime", "bus"] {
        readiness.set(condition, false);
    }

    let (runtime, updates) = runtime::add_tasks(&mut kit, &cri, &bus);
    let starts = StartPublisher {
        node: node.clone(),
        bus: bus.clone(),
        updates,
        metrics: metrics.clone(),
    };
    let starts = starts.publish_starts(kit.shutdown.clone());
    kit.tasks.add("starts", infallible(starts));
    let (held_tx, orders_held) = watch::channel(0);
    let report = Report {
        node: node.clone(),
        metrics,
        state: kit.admin.state(),
        readiness,
        orders_held: held_tx,
        runtime: runtime.clone(),
    };
    let presence = PresencePublisher {
        bus: bus.clone(),
        node: node.clone(),
        boot_id,
        runtime,
        orders_held,
    };
    let presence = presence.publish_presence(kit.shutdown.clone());
    kit.tasks.add("presence", infallible(presence));
    let io = RealNodeIo { node, cri, bus };
    orders::add_tasks(&mut kit, io, journal, args.settings(), report);
    let admin = kit.admin.serve(kit.shutdown.clone());
    kit.tasks.add("admin", admin);
    let drain = Duration::from_secs(args.drain_seconds.into());
    kit.tasks.run_to_end(drain).await
}

//! Orders: from the bus to the runtime, with a journal between them.
//!
//! Owns the order loop, its IO, the inlet and the journal. `node-rules` decides.

mod inlet;
mod io;
mod journal;
mod order_loop;
mod report;

mod hooks;
mod removal;

use anyhow::Context;
use node_rules::Settings;
use service_kit::Kit;
use tokio::sync::mpsc;

use self::order_loop::OrderLoop;
pub(crate) use self::{io::RealNodeIo, journal::Journal, report::Report};

/// Orders that may wait for the loop before the inlet waits.
const INCOMING: usize = 1024;

/// Adds the tasks that receive orders and carry them out.
pub(crate) fn add_tasks(
    kit: &mut Kit,
    io: RealNodeIo,
    journal: Journal,
    settings: Settings,
    report: Report,
) {
    let (tx, incoming) = mpsc::channel(INCOMING);
    let inlet = inlet::consume_orders(io.bus.clone(), io.node.clone(), tx, kit.shutdown.clone());
    kit.tasks.add("order-inlet", async {
        inlet.await.context("failed to receive orders")
    });
    let order_loop = OrderLoop::new(settings, journal, io, report);
    let run = order_loop.run(incoming, kit.shutdown.clone());
    kit.tasks.add("order-loop", async {
        run.await.context("the order loop failed")
    });
}

//! Orders from the bus to the order loop.
//!
//! Owns the subscription, which ends when the shutdown begins: from then on the bus answers that the node has no
//! subscriber.

use anyhow::Context;
use bus::{Bus, Reply};
use model::{
    ids::NodeName,
    order::{Answer, Sending},
};
use service_kit::Shutdown;
use tokio::{select, sync::mpsc};

pub(crate) struct Incoming<R> {
    pub(crate) sending: Sending,
    pub(crate) traceparent: Option<String>,
    pub(crate) reply: R,
}

/// Receives orders until the shutdown.
///
/// # Errors
/// The subscription failed or was closed.
pub(crate) async fn consume_orders(
    bus: Bus,
    node: NodeName,
    tx: mpsc::Sender<Incoming<Reply<Answer>>>,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let mut deliveries = bus.serve_orders(&node).await?;
    loop {
        let delivery = select! {
            () = shutdown.wait() => return Ok(()),
            delivery = deliveries.next() => delivery.context("the bus closed the subscription")?,
        };
        let incoming = Incoming {
            sending: delivery.message,
            traceparent: delivery.traceparent,
            reply: delivery.reply,
        };
        if tx.send(incoming).await.is_err() {
            return Ok(()); // The loop has ended; its own error says why.
        }
    }
}

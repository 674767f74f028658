//! Orders from the bus to the driver.
//!
//! Owns the subscription. It ends when the shutdown begins: from then on the node is not there for orders.

use bus::{Bus, Reply, SubscribeError};
use model::{
    ids::NodeName,
    order::{OrderAnswer, StopOrder},
};
use service_kit::Shutdown;
use tokio::{select, sync::mpsc};

/// An order and the way back to who sent it.
pub(crate) struct Incoming<R> {
    pub(crate) order: StopOrder,
    pub(crate) trace_parent: Option<String>,
    pub(crate) reply: R,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum OrdersError {
    #[error("failed to listen for orders")]
    Subscribe(#[source] SubscribeError),
    #[error("the bus has closed the subscription")]
    Closed,
}

/// Passes orders on until the shutdown.
pub(crate) async fn consume_orders(
    bus: Bus,
    node: NodeName,
    tx: mpsc::Sender<Incoming<Reply<OrderAnswer>>>,
    shutdown: Shutdown,
) -> Result<(), OrdersError> {
    let mut deliveries = bus
        .serve_orders(&node)
        .await
        .map_err(OrdersError::Subscribe)?;
    loop {
        let delivery = select! {
            () = shutdown.wait() => return Ok(()),
            delivery = deliveries.next() => delivery.ok_or(OrdersError::Closed)?,
        };
        let incoming = Incoming {
            order: delivery.message,
            trace_parent: delivery.traceparent,
            reply: delivery.reply,
        };
        if tx.send(incoming).await.is_err() {
            return Ok(()); // The driver has ended, and its end says why.
        }
    }
}

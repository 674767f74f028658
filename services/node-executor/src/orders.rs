//! Orders from the bus: stops to the driver, drops to the dropper.
//!
//! Owns the subscription. It ends when the shutdown begins: from then on the node is not there for orders.

use bus::{Bus, Reply, SubscribeError};
use model::{
    error_chain::ErrorChain,
    ids::NodeName,
    order::{NodeAnswer, NodeOrder, StopOrder},
};
use service_kit::Shutdown;
use tokio::{select, sync::mpsc, task::JoinSet};
use tracing::warn;

use crate::drops::Dropper;

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
    tx: mpsc::Sender<Incoming<Reply<NodeAnswer>>>,
    dropper: Dropper,
    shutdown: Shutdown,
) -> Result<(), OrdersError> {
    let mut deliveries = bus
        .serve_orders(&node)
        .await
        .map_err(OrdersError::Subscribe)?;
    let mut drops = JoinSet::new();
    loop {
        let delivery = select! {
            () = shutdown.wait() => return Ok(()),
            Some(_) = drops.join_next() => continue,
            delivery = deliveries.next() => delivery.ok_or(OrdersError::Closed)?,
        };
        let trace_parent = delivery.traceparent;
        match delivery.message {
            NodeOrder::Stop(order) => {
                let incoming = Incoming {
                    order,
                    trace_parent,
                    reply: delivery.reply,
                };
                if tx.send(incoming).await.is_err() {
                    return Ok(()); // The driver has ended, and its end says why.
                }
            }
            NodeOrder::Drop(order) => {
                let (dropper, reply) = (dropper.clone(), delivery.reply);
                drops.spawn(async move {
                    let answer = dropper.drop_dead(&order, trace_parent.as_deref()).await;
                    if let Err(error) = reply.send(answer.into()).await {
                        // Whoever asked will ask again.
                        warn!(error = %ErrorChain(&error), "Answer was not sent");
                    }
                });
            }
        }
    }
}

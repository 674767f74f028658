//! The driver's hands: the runtime, hooks and the bus.
//!
//! Owns the seam between the driver and the outside, so that the driver is tested without either.
//! What is done, and when, is decided in `node-rules`.

use std::time::Duration;

use bus::{Bus, Reply};
use model::{
    error_chain::ErrorChain,
    ids::{ContainerId, NodeName},
    order::{Instance, NodeAnswer, OrderAnswer, PreStop, StopReport},
};
use node_rules::{HookResult, Observed, StopResult};
use tracing::{debug, warn};

use crate::{cri::Cri, hooks};

/// How long a leader may take to acknowledge a report.
const REPORT_DEADLINE: Duration = Duration::from_secs(5);

/// Whether a leader has a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acknowledged {
    Yes,
    No,
}

/// Everything the driver wants done outside of this process.
pub(crate) trait Outside: Clone + Send + Sync + 'static {
    /// The way back to who sent an order.
    type Reply: Send + 'static;

    fn inspect(&self, instance: &Instance) -> impl Future<Output = Observed> + Send;

    fn run_hook(
        &self,
        instance: &Instance,
        hook: &PreStop,
        limit: Duration,
    ) -> impl Future<Output = HookResult> + Send;

    fn stop(
        &self,
        container_id: &ContainerId,
        timeout: Duration,
    ) -> impl Future<Output = StopResult> + Send;

    fn report(
        &self,
        report: &StopReport,
        trace_parent: Option<&str>,
    ) -> impl Future<Output = Acknowledged> + Send;

    fn answer(&self, reply: Self::Reply, answer: OrderAnswer) -> impl Future<Output = ()> + Send;
}

/// The real outside.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) name: NodeName,
    pub(crate) cri: Cri,
    pub(crate) bus: Bus,
}

// === impl Node ===

impl Outside for Node {
    type Reply = Reply<NodeAnswer>;

    async fn inspect(&self, instance: &Instance) -> Observed {
        self.cri.observe(instance).await
    }

    async fn run_hook(&self, instance: &Instance, hook: &PreStop, limit: Duration) -> HookResult {
        hooks::run_hook(&self.cri, instance, hook, limit).await
    }

    async fn stop(&self, container_id: &ContainerId, timeout: Duration) -> StopResult {
        self.cri.stop(container_id, timeout).await
    }

    async fn report(&self, report: &StopReport, trace_parent: Option<&str>) -> Acknowledged {
        let sent = self
            .bus
            .send_report(&self.name, report, trace_parent, REPORT_DEADLINE)
            .await;
        match sent {
            Ok(()) => Acknowledged::Yes,
            Err(error) => {
                debug!(order = %report.order, error = %ErrorChain(&error), "Report was not acknowledged");
                Acknowledged::No
            }
        }
    }

    async fn answer(&self, reply: Reply<NodeAnswer>, answer: OrderAnswer) {
        if let Err(error) = reply.send(answer.into()).await {
            // Whoever asked will ask again.
            warn!(error = %ErrorChain(&error), "Answer was not sent");
        }
    }
}

//! IO that the order loop uses: CRI, hooks, bus.
//!
//! Owns the trait between the loop and its IO, so that tests of the loop need neither runtime nor bus. It decides
//! nothing.

use std::time::Duration;

use bus::{Bus, Reply};
use cri::{Cri, CriError};
use model::{
    error_chain::ErrorChain,
    ids::NodeName,
    order::{Answer, Report},
};
use node_rules::{Action, Event, Observed, StopResult};
use service_kit::{backoff::Backoff, trace};
use tokio::time::sleep;
use tracing::{debug, warn};

use super::{hooks, removal};

/// Time for a leader to acknowledge a report.
const REPORT_DEADLINE: Duration = Duration::from_secs(5);

/// Spreads the repeated reports of a cluster's nodes.
const REPORT_JITTER: Duration = Duration::from_secs(1);

pub(crate) trait NodeIo: Clone + Send + Sync + 'static {
    type Reply: Send + 'static;

    /// Carries out an action, in its order's span, and returns the event that it ends with.
    ///
    /// `traceparent`: the journaled one, for a report that is sent when the order's span has ended.
    fn act(
        &self,
        action: Action,
        traceparent: Option<String>,
    ) -> impl Future<Output = Event> + Send;

    fn answer(&self, reply: Self::Reply, answer: Answer) -> impl Future<Output = ()> + Send;
}

#[derive(Clone)]
pub(crate) struct RealNodeIo {
    pub(crate) node: NodeName,
    pub(crate) cri: Cri,
    pub(crate) bus: Bus,
}

// === impl RealNodeIo ===

impl NodeIo for RealNodeIo {
    type Reply = Reply<Answer>;

    async fn act(&self, action: Action, traceparent: Option<String>) -> Event {
        match action {
            Action::Inspect { order, instance } => {
                let newest = self.cri.newest_instance(&instance).await;
                let observed = newest.unwrap_or_else(|error| Observed::Unavailable {
                    message: ErrorChain(&error).to_string(),
                });
                Event::Inspected { order, observed }
            }
            Action::RunHook {
                order,
                instance,
                hook,
                limit,
            } => {
                let result = hooks::run_hook(&self.cri, &instance, &hook, limit).await;
                Event::HookEnded { order, result }
            }
            Action::Stop {
                order,
                container_id,
                timeout,
            } => {
                let result = stop_result(self.cri.stop(&container_id, timeout).await);
                Event::StopEnded { order, result }
            }
            Action::ListInstances { order, instance } => {
                let listed = self.cri.list_instances(&instance).await;
                let listed = listed.map_err(|error| ErrorChain(&error).to_string());
                Event::InstancesListed { order, listed }
            }
            Action::RemoveInstances {
                order,
                instance,
                container_ids,
            } => {
                let removed = removal::remove_instances(&self.cri, &instance, &container_ids).await;
                let result = removed.map_err(|error| ErrorChain(&error).to_string());
                Event::RemovalEnded { order, result }
            }
            Action::Report(report) => self.report(report, traceparent).await,
        }
    }

    async fn answer(&self, reply: Reply<Answer>, answer: Answer) {
        if let Err(error) = reply.send(answer).await {
            warn!(error = %ErrorChain(&error), "Failed to send the answer; the requester repeats its order");
        }
    }
}

impl RealNodeIo {
    async fn report(&self, report: Report, traceparent: Option<String>) -> Event {
        let traceparent = trace::current_traceparent().or(traceparent);
        let sent = self
            .bus
            .send_report(&self.node, &report, traceparent.as_deref(), REPORT_DEADLINE)
            .await;
        let (order, sequence) = (report.order, report.sequence);
        match sent {
            Ok(()) => Event::ReportAcknowledged { order, sequence },
            Err(error) => {
                debug!(%order, error = %ErrorChain(&error), "Report not acknowledged; repeating it");
                sleep(Backoff::new(REPORT_JITTER, REPORT_JITTER).next_delay()).await;
                Event::ReportFailed { order, sequence }
            }
        }
    }
}

fn stop_result(stopped: Result<(), CriError>) -> StopResult {
    let Err(error) = stopped else {
        return StopResult::Stopped;
    };
    let message = ErrorChain(&error).to_string();
    if error.is_not_found() {
        StopResult::NotFound
    } else if error.is_runtime_away() {
        StopResult::Unavailable { message }
    } else {
        StopResult::Failed { message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unanswered_stop_may_have_happened_and_a_timed_out_one_failed() {
        let method = "StopContainer";
        let reason = "connection refused".to_owned();
        let unanswered = stop_result(Err(CriError::NotAnswered { method, reason }));
        assert!(matches!(unanswered, StopResult::Unavailable { .. }));
        let limit = Duration::from_secs(1);
        let timed_out = stop_result(Err(CriError::TimedOut { method, limit }));
        assert!(matches!(timed_out, StopResult::Failed { .. }));
        assert_eq!(stop_result(Ok(())), StopResult::Stopped);
    }
}

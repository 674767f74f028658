//! What the driver tells people: log lines, metrics and /state.
//!
//! Owns one log line for each transition a user could see. It changes nothing.

use std::time::Duration;

use model::{
    ids::{NodeName, OrderId},
    order::{OrderAnswer, StopOutcome},
    presence::Runtime,
};
use node_rules::{Event, HookResult, Machine, Record, Stage, StopResult};
use serde_json::{Value, json};
use service_kit::{Readiness, StateCell};
use tokio::sync::watch;
use tracing::{debug, info, warn};

use crate::metrics::Metrics;

/// Where reports of the driver go.
pub(crate) struct Report {
    pub(crate) node: NodeName,
    pub(crate) metrics: Metrics,
    pub(crate) state: StateCell,
    pub(crate) readiness: Readiness,
    pub(crate) orders_held: watch::Sender<u32>,
    pub(crate) runtime: watch::Receiver<Option<Runtime>>,
}

// === impl Report ===

impl Report {
    pub(super) fn recovered(&self, records: &[Record]) {
        let unfinished = records.iter().filter(|record| !is_finished(record)).count();
        info!(records = records.len(), unfinished, "Journal is loaded");
    }

    pub(super) fn ready(&self) {
        self.readiness.set("journal", true);
    }

    pub(super) fn happened(&self, event: &Event) {
        match event {
            Event::HookEnded { order, result } => {
                self.metrics.count_hook(result);
                match result {
                    HookResult::Succeeded => info!(%order, "Hook ended"),
                    HookResult::Failed { message } => {
                        warn!(%order, error = message, "Hook failed, the stop goes on");
                    }
                    HookResult::CutOff => warn!(%order, "Hook was cut off, the stop goes on"),
                }
            }
            Event::StopEnded { order, result } => match result {
                StopResult::Stopped | StopResult::NotFound => {}
                StopResult::Failed { message } => {
                    warn!(%order, error = message, "Stop failed, looking at the container");
                }
                StopResult::Unavailable { message } => {
                    warn!(%order, error = message, "Runtime went away, the stop is repeated");
                }
            },
            Event::ReportAcknowledged { order, .. } => {
                self.metrics.count_report(true);
                debug!(%order, "Report is acknowledged");
            }
            Event::ReportFailed { .. } => self.metrics.count_report(false),
            Event::DrainBegun => info!("Draining: nothing new is begun"),
            Event::Inspected { order, observed } => debug!(%order, ?observed, "Inspected"),
            Event::Ordered { order, .. } => {
                debug!(order = %order.id, attempt = order.attempt, "Order came");
            }
            Event::Recovered { .. } | Event::Tick => {}
        }
    }

    pub(super) fn answered(&self, order: &OrderId, answer: &OrderAnswer) {
        self.metrics.count_answer(answer);
        if let OrderAnswer::Refused(reason) = answer {
            info!(%order, %reason, "Order is refused");
        }
    }

    pub(super) fn stored(&self, record: &Record, took: Duration) {
        self.metrics.observe_commit(took);
        let order = &record.order.id;
        let instance = &record.order.instance;
        match &record.stage {
            Stage::Queued => info!(%order, "Order is accepted and waits"),
            Stage::Begun { .. } => info!(
                %order,
                ns = %instance.namespace,
                pod = %instance.pod,
                container = %instance.container,
                reason = record.order.reason,
                "Order is begun"
            ),
            Stage::HookDone { .. } => {}
            Stage::Finished {
                outcome,
                finished_at,
                is_acknowledged: false,
                ..
            } => {
                let took = record.accepted_at.duration_until(*finished_at);
                let took = Duration::try_from(took).unwrap_or(Duration::ZERO);
                self.metrics.count_stop(outcome, took);
                match outcome {
                    StopOutcome::Stopped { .. } => info!(%order, ?took, "Container is stopped"),
                    StopOutcome::Gone => info!(%order, "Container was gone before the stop"),
                    StopOutcome::Failed { message } => {
                        warn!(%order, error = message, "Container could not be stopped");
                    }
                }
            }
            Stage::Finished {
                is_acknowledged: true,
                ..
            } => {}
        }
    }

    pub(super) fn state(&self, machine: &Machine) {
        let unfinished = machine.unfinished();
        self.metrics
            .unfinished
            .set(i64::try_from(unfinished).unwrap_or(i64::MAX));
        self.metrics
            .acting
            .set(i64::try_from(machine.acting()).unwrap_or(i64::MAX));
        let held = u32::try_from(unfinished).unwrap_or(u32::MAX);
        self.orders_held.send_if_modified(|known| {
            let is_new = *known != held;
            *known = held;
            is_new
        });
        let runtime = self.runtime.borrow().clone();
        self.state.store(json!({
            "node": self.node.as_str(),
            "runtime": runtime.map(|runtime| format!("{} {}", runtime.name, runtime.version)),
            "acting": machine.acting(),
            "remembered": machine.records().filter(|record| is_finished(record)).count(),
            "orders": machine
                .records()
                .filter(|record| !is_finished(record) || is_unacknowledged(record))
                .map(order_state)
                .collect::<Vec<_>>(),
        }));
    }
}

fn is_finished(record: &Record) -> bool {
    matches!(record.stage, Stage::Finished { .. })
}

fn is_unacknowledged(record: &Record) -> bool {
    matches!(
        record.stage,
        Stage::Finished {
            is_acknowledged: false,
            ..
        }
    )
}

fn order_state(record: &Record) -> Value {
    let instance = &record.order.instance;
    let stage = match &record.stage {
        Stage::Queued => "waits for a slot",
        Stage::Begun { .. } => "runs its hook or stops",
        Stage::HookDone { .. } => "stops",
        Stage::Finished { .. } => "finished, not acknowledged",
    };
    json!({
        "order": record.order.id.as_str(),
        "pod": format!("{}/{}", instance.namespace, instance.pod),
        "container": instance.container.as_str(),
        "container_id": instance.container_id.as_str(),
        "accepted_at": record.accepted_at.to_string(),
        "stage": stage,
    })
}

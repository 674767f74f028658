//! Log lines, metrics and /state of the order loop.
//!
//! Owns one log line for each transition that a user can see. It changes no order.

use std::time::Duration;

use model::{
    ids::NodeName,
    order::{Answer, Outcome},
    order_id::{OrderId, Task},
    presence::Runtime,
    time::elapsed,
};
use node_rules::{Event, HookResult, Machine, Record, Stage, StopResult};
use serde_json::{Value, json};
use service_kit::{Readiness, StateCell};
use tokio::sync::watch;
use tracing::{debug, info, warn};

use crate::metrics::Metrics;

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
    pub(crate) fn recovered(&self, records: &[Record]) {
        let is_finished = |record: &&Record| matches!(record.stage, Stage::Finished { .. });
        let unfinished = records.len() - records.iter().filter(is_finished).count();
        info!(records = records.len(), unfinished, "Journal loaded");
    }

    pub(crate) fn happened(&self, event: &Event) {
        match event {
            Event::HookEnded { order, result } => {
                self.metrics.count_hook(result);
                match result {
                    HookResult::Succeeded => info!(%order, "Hook ended"),
                    HookResult::Failed { message } => {
                        warn!(%order, error = message, "Hook failed; continuing with the stop");
                    }
                    HookResult::CutOff => {
                        warn!(%order, "Hook cut off at its deadline; continuing with the stop");
                    }
                }
            }
            Event::StopEnded { order, result } => match result {
                StopResult::Stopped | StopResult::NotFound => {}
                StopResult::Failed { message } => {
                    warn!(%order, error = message, "Stop failed; inspecting the container");
                }
                StopResult::Unavailable { message } => {
                    warn!(%order, error = message, "Runtime became unavailable; retrying the stop");
                }
            },
            Event::ReportAcknowledged { order, .. } => {
                self.metrics.reports.count("acknowledged");
                debug!(%order, "Report acknowledged");
            }
            Event::ReportFailed { .. } => self.metrics.reports.count("unacknowledged"),
            Event::DrainBegun => info!("Drain begun; accepted orders stay in the journal"),
            Event::Inspected { order, observed } => {
                debug!(%order, ?observed, "Container inspected");
            }
            Event::Ordered { sending, .. } => {
                debug!(order = %sending.order.id, attempt = sending.attempt, "Order received");
            }
            Event::Recovered { .. }
            | Event::InstancesListed { .. }
            | Event::RemovalEnded { .. }
            | Event::Tick => {}
        }
    }

    pub(crate) fn answered(&self, order: &OrderId, answer: &Answer) {
        match order.task {
            Task::Stop => {
                self.metrics.count_answer(answer);
                if let Answer::Refused(reason) = answer {
                    info!(%order, %reason, "Order refused");
                }
            }
            Task::RemoveDeadInstances => {
                self.metrics.count_removal(answer);
                info!(%order, ?answer, "Removal of dead instances ended");
            }
        }
    }

    /// `took`: the time of the one commit of all `records`.
    pub(crate) fn stored(&self, records: &[Record], took: Duration) {
        self.metrics.observe_commit(took);
        for record in records {
            self.reached(record);
        }
    }

    fn reached(&self, record: &Record) {
        let order = &record.order.id;
        let instance = &record.order.instance;
        match &record.stage {
            Stage::Queued => info!(%order, "Order accepted; waiting for a slot"),
            Stage::Begun { .. } => info!(
                %order,
                ns = %instance.namespace,
                pod = %instance.pod,
                container = %instance.container,
                reason = record.order.reason,
                "Order begun"
            ),
            Stage::Finished {
                outcome,
                finished_at,
                is_acknowledged: false,
                ..
            } => self.finished(order, outcome, elapsed(record.accepted_at, *finished_at)),
            Stage::HookDone { .. } | Stage::Finished { .. } => {}
        }
    }

    fn finished(&self, order: &OrderId, outcome: &Outcome, took: Duration) {
        self.metrics.count_stop(outcome, took);
        match outcome {
            Outcome::Stopped { .. } => info!(%order, ?took, "Container stopped"),
            Outcome::Gone => info!(%order, "Container was already gone before the stop"),
            Outcome::Failed { message } => {
                warn!(%order, error = message, "Failed to stop the container");
            }
            Outcome::Removed { .. } => {}
        }
    }

    pub(crate) fn state(&self, machine: &Machine) {
        let unfinished = machine.unfinished();
        let gauge = |count| i64::try_from(count).unwrap_or(i64::MAX);
        self.metrics.unfinished.set(gauge(unfinished));
        self.metrics.acting.set(gauge(machine.acting()));
        let held = u32::try_from(unfinished).unwrap_or(u32::MAX);
        let orders_held = &self.orders_held;
        orders_held.send_if_modified(|known| std::mem::replace(known, held) != held);
        let runtime = self.runtime.borrow().clone();
        self.state.store(json!({
            "node": self.node.as_str(),
            "runtime": runtime.map(|runtime| format!("{} {}", runtime.name, runtime.version)),
            "acting": machine.acting(),
            "remembered": machine.finished(),
            "orders": machine.open_records().map(order_state).collect::<Vec<_>>(),
        }));
    }
}

fn order_state(record: Record) -> Value {
    let instance = record.order.instance;
    let stage = match record.stage {
        Stage::Queued => "waits for a slot",
        Stage::Begun { .. } => "runs its hook or stops",
        Stage::HookDone { .. } => "stops",
        Stage::Finished { .. } => "finished, not acknowledged",
    };
    json!({
        "order": record.order.id.to_string(),
        "pod": format!("{}/{}", instance.namespace, instance.pod),
        "container": instance.container.as_str(),
        "container_id": instance.container_id.as_str(),
        "accepted_at": record.accepted_at.to_string(),
        "stage": stage,
    })
}

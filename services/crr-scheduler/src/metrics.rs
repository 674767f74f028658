//! Metrics of the crr-scheduler.

use api_client::WriteError;
use jiff::Timestamp;
use model::{crr::Crr, order::Answer, phase::ContainerPhase};
use order_rules::Silence;
use prometheus_client::{
    metrics::{gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use service_kit::metrics::{self, CounterBy};

#[derive(Clone)]
pub(crate) struct Metrics {
    active: Gauge,
    /// `succeeded` or `failed`.
    completed: CounterBy,
    /// `accepted`, `done`, `refused`, `silent`.
    orders: CounterBy,
    /// `ok`, `conflict`, `gone`, `failed`.
    writes: CounterBy,
    duration: Histogram,
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        // A kubelet's relist is 1 s, its back-off goes to 300 s.
        let bounds = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0];
        let help = "Time from a CRR's creation to its completion";
        let mut all = metrics::Metrics::new(registry, "crr_scheduler");
        Self {
            active: all.gauge("active", "CRRs that have not ended"),
            completed: all.counter_by("result", "completed", "CRRs that ended, by result"),
            orders: all.counter_by("result", "orders", "Orders sent, by the answer's kind"),
            writes: all.counter_by("result", "writes", "API writes, by result"),
            duration: all.seconds("duration", help, bounds),
        }
    }

    /// Counts a CRR whose end is stored: a write that failed and is tried again counts nothing.
    pub(crate) fn count_end(&self, crr: &Crr, now: Timestamp) {
        let mut states = crr.status.containers.iter();
        let has_succeeded = states.all(|state| state.phase == ContainerPhase::Succeeded);
        let result = if has_succeeded { "succeeded" } else { "failed" };
        self.completed.count(result);
        self.duration
            .observe(now.duration_since(crr.created_at).as_secs_f64());
    }

    pub(crate) fn set_active(&self, active: usize) {
        self.active.set(i64::try_from(active).unwrap_or(i64::MAX));
    }

    pub(crate) fn count_order(&self, result: &Result<Answer, Silence>) {
        let result = match result {
            Ok(Answer::Accepted) => "accepted",
            Ok(Answer::Refused(_)) => "refused",
            Ok(Answer::Done { .. }) => "done",
            Err(_) => "silent",
        };
        self.orders.count(result);
    }

    pub(crate) fn count_write(&self, error: Option<&WriteError>) {
        self.writes.count(error.map_or("ok", WriteError::kind));
    }
}

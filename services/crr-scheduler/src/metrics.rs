//! What the crr-scheduler counts.

use jiff::Timestamp;
use model::{crr::Crr, phase::ContainerPhase};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

type ByResult = Family<[(&'static str, &'static str); 1], Counter>;

/// Counters and gauges; labels are bounded.
#[derive(Clone)]
pub(crate) struct Metrics {
    pub(crate) active: Gauge,
    /// `result`: `succeeded` or `failed`.
    completed: ByResult,
    /// `result`: `accepted`, `done`, `refused`, `silent`.
    orders: ByResult,
    /// `result`: `ok`, `conflict`, `gone`, `failed`.
    writes: ByResult,
    duration: Histogram,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        // Seconds from creation to completion: a kubelet's relist is 1 s, its back-off goes to 300 s.
        let buckets = [0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0];
        let metrics = Self {
            active: Gauge::default(),
            completed: Family::default(),
            orders: Family::default(),
            writes: Family::default(),
            duration: Histogram::new(buckets),
        };
        let registry = registry.sub_registry_with_prefix("crr_scheduler");
        registry.register("active", "CRRs that have not ended", metrics.active.clone());
        registry.register(
            "completed",
            "CRRs that ended, by result",
            metrics.completed.clone(),
        );
        registry.register(
            "orders",
            "Orders sent, by the answer's kind",
            metrics.orders.clone(),
        );
        registry.register("writes", "API writes, by result", metrics.writes.clone());
        registry.register(
            "duration_seconds",
            "Time from a CRR's creation to its completion",
            metrics.duration.clone(),
        );
        metrics
    }

    /// Counts a CRR whose end is stored: a write that failed and is tried again counts nothing.
    pub(crate) fn count_end(&self, crr: &Crr, now: Timestamp) {
        let mut states = crr.status.containers.iter();
        let has_succeeded = states.all(|state| state.phase == ContainerPhase::Succeeded);
        let result = if has_succeeded { "succeeded" } else { "failed" };
        self.completed.get_or_create(&[("result", result)]).inc();
        self.duration
            .observe(now.duration_since(crr.created_at).as_secs_f64());
    }

    pub(crate) fn count_order(&self, result: &'static str) {
        self.orders.get_or_create(&[("result", result)]).inc();
    }

    pub(crate) fn count_write(&self, result: &'static str) {
        self.writes.get_or_create(&[("result", result)]).inc();
    }
}

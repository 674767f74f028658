//! Metrics of the barrier-manager.

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use service_kit::metrics::{self, CounterBy};

#[derive(Clone)]
pub(crate) struct Metrics {
    pub(crate) pods: Gauge,
    pub(crate) launching: Gauge,
    pub(crate) launched: Counter,
    pub(crate) stuck: Counter,
    pub(crate) level_duration: Histogram,
    /// `ok`, `conflict`, `gone`, `failed`.
    pub(crate) writes: CounterBy,
    pub(crate) hints: Counter,
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        // A level takes the kubelet a second; an image to be pulled, minutes.
        let bounds = [0.25, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0];
        let level = "Time from a level's turn until all its containers were up";
        let stuck = "Warnings about pods: a level not up within the set time, or barriers that cannot be opened";
        let mut all = metrics::Metrics::new(registry, "barrier_manager");
        Self {
            pods: all.gauge("pods", "Pods with launch barriers"),
            launching: all.gauge("launching", "Pods whose levels are not all up"),
            launched: all.counter("launched", "Launches seen to their end"),
            stuck: all.counter("stuck", stuck),
            level_duration: all.seconds("level_duration", level, bounds),
            writes: all.counter_by("result", "writes", "API writes, by result"),
            hints: all.counter("hints", "Container starts that nodes published"),
        }
    }
}

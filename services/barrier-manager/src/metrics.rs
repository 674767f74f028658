//! What the barrier-manager counts.

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

/// Counters and gauges; labels are bounded.
#[derive(Clone)]
pub(crate) struct Metrics {
    pub(crate) pods: Gauge,
    pub(crate) launching: Gauge,
    pub(crate) launched: Counter,
    pub(crate) stuck: Counter,
    pub(crate) level_duration: Histogram,
    /// `result`: `ok`, `conflict`, `gone`, `failed`.
    writes: Family<[(&'static str, &'static str); 1], Counter>,
    pub(crate) hints: Counter,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        // Seconds: a level takes the kubelet a second; an image to be pulled, minutes.
        let buckets = [0.25, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0];
        let metrics = Self {
            pods: Gauge::default(),
            launching: Gauge::default(),
            launched: Counter::default(),
            stuck: Counter::default(),
            level_duration: Histogram::new(buckets),
            writes: Family::default(),
            hints: Counter::default(),
        };
        let registry = registry.sub_registry_with_prefix("barrier_manager");
        let help = "Pods with launch barriers";
        registry.register("pods", help, metrics.pods.clone());
        let help = "Pods whose levels are not all up";
        registry.register("launching", help, metrics.launching.clone());
        let help = "Launches seen to their end";
        registry.register("launched", help, metrics.launched.clone());
        let help = "Warnings told of pods: a level not up within the set time, or barriers that cannot be opened";
        registry.register("stuck", help, metrics.stuck.clone());
        let help = "Time from a level's turn until all its containers were up";
        let duration = metrics.level_duration.clone();
        registry.register_with_unit("level_duration", help, Unit::Seconds, duration);
        let help = "API writes, by result";
        registry.register("writes", help, metrics.writes.clone());
        let help = "Starts that nodes told of";
        registry.register("hints", help, metrics.hints.clone());
        metrics
    }

    pub(crate) fn count_write(&self, result: &'static str) {
        self.writes.get_or_create(&[("result", result)]).inc();
    }
}

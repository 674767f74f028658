//! What admission counts.

use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

/// Counters; labels are bounded.
#[derive(Clone)]
pub(crate) struct Metrics {
    /// `result`: `allowed`, `refused`, `failed`.
    reviews: Family<[(&'static str, &'static str); 1], Counter>,
    pub(crate) duration: Histogram,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            reviews: Family::default(),
            // Seconds; the API server waits ten at most.
            duration: Histogram::new([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0]),
        };
        let registry = registry.sub_registry_with_prefix("admission");
        registry.register("reviews", "Reviews, by result", metrics.reviews.clone());
        let help = "Time from a review's arrival to its answer";
        registry.register_with_unit("duration", help, Unit::Seconds, metrics.duration.clone());
        metrics
    }

    pub(crate) fn count(&self, result: &'static str) {
        self.reviews.get_or_create(&[("result", result)]).inc();
    }
}

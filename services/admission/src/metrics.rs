//! What admission counts.

use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

/// Counters; labels are bounded.
#[derive(Clone)]
pub(crate) struct Metrics {
    /// `result`: `allowed`, `refused`, `failed`; of pods `gated`, `ordered`, `left`.
    reviews: Family<[(&'static str, &'static str); 1], Counter>,
    pub(crate) duration: Histogram,
    /// `result`: `converted`, `failed`.
    conversions: Family<[(&'static str, &'static str); 1], Counter>,
    pub(crate) conversion_duration: Histogram,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            reviews: Family::default(),
            // Seconds; the API server waits ten at most.
            duration: Histogram::new([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0]),
            conversions: Family::default(),
            // Seconds; one object is to take less than the third.
            conversion_duration: Histogram::new([0.0001, 0.0003, 0.001, 0.003, 0.01, 0.1, 1.0]),
        };
        let registry = registry.sub_registry_with_prefix("admission");
        registry.register("reviews", "Reviews, by result", metrics.reviews.clone());
        let help = "Time from a review's arrival to its answer";
        registry.register_with_unit("duration", help, Unit::Seconds, metrics.duration.clone());
        let help = "Conversions between v1alpha1 and v1beta1, by result";
        registry.register("conversions", help, metrics.conversions.clone());
        let help = "Time of one conversion, which may be of a whole list";
        let duration = metrics.conversion_duration.clone();
        registry.register_with_unit("conversion_duration", help, Unit::Seconds, duration);
        metrics
    }

    pub(crate) fn count(&self, result: &'static str) {
        self.reviews.get_or_create(&[("result", result)]).inc();
    }

    pub(crate) fn count_conversion(&self, result: &'static str) {
        self.conversions.get_or_create(&[("result", result)]).inc();
    }
}

//! Metrics of admission.

use prometheus_client::{metrics::histogram::Histogram, registry::Registry};
use service_kit::metrics::{self, CounterBy};

#[derive(Clone)]
pub(crate) struct Metrics {
    /// `allowed`, `refused`, `failed`; of pods `gated`, `ordered`, `left`.
    pub(crate) reviews: CounterBy,
    pub(crate) duration: Histogram,
    /// `converted`, `failed`.
    pub(crate) conversions: CounterBy,
    pub(crate) conversion_duration: Histogram,
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        // The API server waits ten seconds at most.
        let bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0];
        let help = "Time from a review's arrival to its answer";
        let mut all = metrics::Metrics::new(registry, "admission");
        let duration = all.seconds("duration", help, bounds);
        // One object takes less than the third bound.
        let bounds = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.1, 1.0];
        let help = "Time of one conversion, which may be of a whole list";
        let conversion_duration = all.seconds("conversion_duration", help, bounds);
        let help = "Conversions between v1alpha1 and v1beta1, by result";
        Self {
            reviews: all.counter_by("result", "reviews", "Reviews, by result"),
            duration,
            conversions: all.counter_by("result", "conversions", help),
            conversion_duration,
        }
    }
}

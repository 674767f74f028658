//! Metrics of a service: named, described and registered in one place.
//!
//! Owns the naming: `<service>_<name>`, with the unit where there is one. Labels have one bounded set of values each.

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Metric, Registry, Unit},
};

/// The metrics of one service.
pub struct Metrics<'a>(&'a mut Registry);

/// Counters of one thing, by the value of one label.
#[derive(Clone, Debug)]
pub struct CounterBy {
    label: &'static str,
    counters: Family<[(&'static str, &'static str); 1], Counter>,
}

// === impl Metrics ===

impl<'a> Metrics<'a> {
    pub fn new(registry: &'a mut Registry, service: &str) -> Self {
        Self(registry.sub_registry_with_prefix(service))
    }

    pub fn counter(&mut self, name: &str, help: &str) -> Counter {
        self.register(name, help, Counter::default())
    }

    pub fn counter_by(&mut self, label: &'static str, name: &str, help: &str) -> CounterBy {
        CounterBy {
            label,
            counters: self.register(name, help, Family::default()),
        }
    }

    pub fn gauge(&mut self, name: &str, help: &str) -> Gauge {
        self.register(name, help, Gauge::default())
    }

    /// A histogram of durations, with the upper bounds of its buckets in seconds.
    pub fn seconds<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        bounds: [f64; N],
    ) -> Histogram {
        let histogram = Histogram::new(bounds);
        self.0
            .register_with_unit(name, help, Unit::Seconds, histogram.clone());
        histogram
    }

    fn register<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }
}

// === impl CounterBy ===

impl CounterBy {
    pub fn count(&self, value: &'static str) {
        self.counters.get_or_create(&[(self.label, value)]).inc();
    }
}

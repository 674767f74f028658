//! What the node-executor counts.

use std::time::Duration;

use model::order::{DropAnswer, OrderAnswer, Refusal, StopOutcome};
use node_rules::HookResult;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

type Labelled = Family<[(&'static str, &'static str); 1], Counter>;

/// Counters, gauges and histograms; labels are bounded.
#[derive(Clone)]
pub(crate) struct Metrics {
    answers: Labelled,
    hooks: Labelled,
    stops: Labelled,
    reports: Labelled,
    drops: Labelled,
    starts: Labelled,
    /// Accepted and not finished.
    pub(crate) unfinished: Gauge,
    /// With a hook or a stop running.
    pub(crate) acting: Gauge,
    stop_duration: Histogram,
    commit_duration: Histogram,
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            answers: Labelled::default(),
            hooks: Labelled::default(),
            stops: Labelled::default(),
            reports: Labelled::default(),
            drops: Labelled::default(),
            starts: Labelled::default(),
            unfinished: Gauge::default(),
            acting: Gauge::default(),
            // A container may take its whole grace: the default of Kubernetes is 30 s.
            stop_duration: Histogram::new([
                0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
            ]),
            // A commit waits for the disk twice at most.
            commit_duration: Histogram::new([
                0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0,
            ]),
        };
        metrics.name_in(registry.sub_registry_with_prefix("node_executor"));
        metrics
    }

    fn name_in(&self, registry: &mut Registry) {
        registry.register(
            "answers",
            "Answers to orders, by kind",
            self.answers.clone(),
        );
        registry.register(
            "drops",
            "Drops of dead instances, by result",
            self.drops.clone(),
        );
        let help = "Starts of containers behind launch barriers, by whether the bus took them";
        registry.register("starts", help, self.starts.clone());
        registry.register(
            "hooks",
            "preStop hooks that ended, by result",
            self.hooks.clone(),
        );
        registry.register("stops", "Orders that ended, by outcome", self.stops.clone());
        registry.register("reports", "Reports sent, by result", self.reports.clone());
        registry.register(
            "orders_unfinished",
            "Orders accepted and not finished",
            self.unfinished.clone(),
        );
        registry.register(
            "orders_acting",
            "Orders with a hook or a stop running",
            self.acting.clone(),
        );
        registry.register_with_unit(
            "stop_duration",
            "Time from an order's acceptance to its end",
            Unit::Seconds,
            self.stop_duration.clone(),
        );
        registry.register_with_unit(
            "journal_commit_duration",
            "Time that one durable commit of the journal takes",
            Unit::Seconds,
            self.commit_duration.clone(),
        );
    }

    pub(crate) fn count_start(&self, result: &'static str) {
        self.starts.get_or_create(&[("result", result)]).inc();
    }

    pub(crate) fn count_answer(&self, answer: &OrderAnswer) {
        let kind = match answer {
            OrderAnswer::Accepted => "accepted",
            OrderAnswer::Done { .. } => "done",
            OrderAnswer::Refused(refusal) => match refusal {
                Refusal::NoSuchPod => "refused_no_such_pod",
                Refusal::NoSuchContainer => "refused_no_such_container",
                Refusal::OtherInstance { .. } => "refused_other_instance",
                Refusal::StillRunning => "refused_still_running",
                Refusal::StopUnfinished { .. } => "refused_stop_unfinished",
                Refusal::AlreadyExited => "refused_already_exited",
                Refusal::RuntimeUnavailable { .. } => "refused_runtime_unavailable",
                Refusal::Invalid { .. } => "refused_invalid",
            },
        };
        self.answers.get_or_create(&[("kind", kind)]).inc();
    }

    pub(crate) fn count_drop(&self, answer: &DropAnswer) {
        let result = match answer {
            DropAnswer::Dropped { .. } => "dropped",
            DropAnswer::Refused(_) => "refused",
        };
        self.drops.get_or_create(&[("result", result)]).inc();
    }

    pub(crate) fn count_hook(&self, result: &HookResult) {
        let result = match result {
            HookResult::Succeeded => "succeeded",
            HookResult::Failed { .. } => "failed",
            HookResult::CutOff => "cut_off",
        };
        self.hooks.get_or_create(&[("result", result)]).inc();
    }

    pub(crate) fn count_stop(&self, outcome: &StopOutcome, took: Duration) {
        let outcome = match outcome {
            StopOutcome::Stopped { .. } => "stopped",
            StopOutcome::Gone => "gone",
            StopOutcome::Failed { .. } => "failed",
        };
        self.stops.get_or_create(&[("outcome", outcome)]).inc();
        self.stop_duration.observe(took.as_secs_f64());
    }

    pub(crate) fn count_report(&self, is_acknowledged: bool) {
        let result = if is_acknowledged {
            "acknowledged"
        } else {
            "unacknowledged"
        };
        self.reports.get_or_create(&[("result", result)]).inc();
    }

    pub(crate) fn observe_commit(&self, took: Duration) {
        self.commit_duration.observe(took.as_secs_f64());
    }
}

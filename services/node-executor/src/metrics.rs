//! Metrics of the node-executor.

use std::time::Duration;

use model::order::{Answer, Outcome, Refusal};
use node_rules::HookResult;
use prometheus_client::{
    metrics::{gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use service_kit::metrics::{self, CounterBy};

#[derive(Clone)]
pub(crate) struct Metrics {
    answers: CounterBy,
    hooks: CounterBy,
    stops: CounterBy,
    /// `acknowledged` or `unacknowledged`.
    pub(crate) reports: CounterBy,
    removals: CounterBy,
    /// `told` or `lost`.
    pub(crate) starts: CounterBy,
    pub(crate) unfinished: Gauge,
    pub(crate) acting: Gauge,
    stop_duration: Histogram,
    commit_duration: Histogram,
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let starts = "Starts of containers behind launch barriers, by whether the bus took them";
        let acting = "Orders with a hook or a stop running";
        let stop = "Time from an order's acceptance to its end";
        // A container may take its whole grace: the default of Kubernetes is 30 s.
        let stop_bounds = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];
        let commit = "Time that one durable commit of the journal takes";
        // A commit waits for the disk twice at most.
        let commit_bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0];
        let mut all = metrics::Metrics::new(registry, "node_executor");
        Self {
            answers: all.counter_by("kind", "answers", "Answers to orders, by kind"),
            removals: all.counter_by("result", "drops", "Removals of dead instances, by result"),
            starts: all.counter_by("result", "starts", starts),
            hooks: all.counter_by("result", "hooks", "preStop hooks that ended, by result"),
            stops: all.counter_by("outcome", "stops", "Orders that ended, by outcome"),
            reports: all.counter_by("result", "reports", "Reports sent, by result"),
            unfinished: all.gauge("orders_unfinished", "Orders accepted and not finished"),
            acting: all.gauge("orders_acting", acting),
            stop_duration: all.seconds("stop_duration", stop, stop_bounds),
            commit_duration: all.seconds("journal_commit_duration", commit, commit_bounds),
        }
    }

    pub(crate) fn count_answer(&self, answer: &Answer) {
        let kind = match answer {
            Answer::Accepted => "accepted",
            Answer::Done { .. } => "done",
            Answer::Refused(refusal) => match refusal {
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
        self.answers.count(kind);
    }

    pub(crate) fn count_removal(&self, answer: &Answer) {
        let result = match answer {
            Answer::Done { .. } | Answer::Accepted => "dropped",
            Answer::Refused(_) => "refused",
        };
        self.removals.count(result);
    }

    pub(crate) fn count_hook(&self, result: &HookResult) {
        let result = match result {
            HookResult::Succeeded => "succeeded",
            HookResult::Failed { .. } => "failed",
            HookResult::CutOff => "cut_off",
        };
        self.hooks.count(result);
    }

    pub(crate) fn count_stop(&self, outcome: &Outcome, took: Duration) {
        let outcome = match outcome {
            Outcome::Stopped { .. } => "stopped",
            Outcome::Gone => "gone",
            Outcome::Failed { .. } => "failed",
            Outcome::Removed { .. } => "removed",
        };
        self.stops.count(outcome);
        self.stop_duration.observe(took.as_secs_f64());
    }

    pub(crate) fn observe_commit(&self, took: Duration) {
        self.commit_duration.observe(took.as_secs_f64());
    }
}

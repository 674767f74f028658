//! Checks at the end of a history: everything has ended, was given back and is forgotten.

use super::Violation;
use crate::{Process, World};

// === impl World ===

impl World {
    pub(crate) fn check_end(&mut self) {
        self.check_end_of_requests();
        self.check_end_of_pods();
        let leaders = self.schedulers.iter();
        let mut machines = leaders.filter_map(|scheduler| scheduler.host.machine.as_ref());
        if !machines.all(|machine| machine.is_empty()) {
            self.fail(Violation::NotForgotten(Process::Scheduler));
        }
        let executors = self.executors.iter();
        let mut machines = executors.filter_map(|executor| executor.host.machine.as_ref());
        let is_journal_empty = self.executors.iter().all(|it| it.journal.is_empty());
        if !is_journal_empty || machines.any(|machine| machine.records().next().is_some()) {
            self.fail(Violation::NotForgotten(Process::Executor));
        }
    }

    fn check_end_of_requests(&mut self) {
        for crr in self.api.crrs.values().cloned().collect::<Vec<_>>() {
            let uid = crr.uid.clone();
            if crr.status.completed_at.is_none() && !crr.is_being_deleted {
                self.fail(Violation::NeverEnded(uid));
            } else if crr.is_labelled_active || crr.has_finalizer() {
                self.fail(Violation::MarkLeft(uid));
            } else if crr.ttl_after_finished.is_some() {
                self.fail(Violation::NeverEnded(uid));
            }
        }
    }

    fn check_end_of_pods(&mut self) {
        for pod in self.api.pods.values().cloned().collect::<Vec<_>>() {
            let uid = pod.pod.uid.clone();
            let is_shut = pod.pod.gate.is_some_and(|gate| gate.is_open == Some(false));
            let have_started = pod.containers.iter().all(|container| {
                let statuses = pod.pod.containers.iter();
                let mut of_name = statuses.filter(|status| status.name == container.name);
                of_name.any(|status| status.container_id.is_some())
            });
            if is_shut {
                self.fail(Violation::GateShut(uid));
            } else if !(pod.containers.is_empty() || have_started && pod.is_completed) {
                self.fail(Violation::LaunchIncomplete(uid));
            }
        }
    }
}

//! The scheduler's shell in the simulated world: what `crr-scheduler` does around `crr-rules`.

use std::collections::BTreeMap;

use crr_rules::{OrderBook, PodView, Seen, Silence, Snapshot, Turn, Write, plan};
use jiff::Timestamp;
use model::{
    crr::Crr,
    ids::{ContainerName, OrderId},
    order::{OrderAnswer, StopOrder, StopReport},
    pod::{ContainerState, Pod},
};

/// All that a crash loses.
#[derive(Default)]
pub(crate) struct Memory {
    book: OrderBook,
    pod: Option<Pod>,
    seen_running: BTreeMap<ContainerName, Seen>,
    status_written_at: Option<Timestamp>,
}

/// What the scheduler wants done now, in this order.
pub(crate) struct Wish {
    pub(crate) status: Option<model::crr::CrrStatus>,
    pub(crate) send: Option<StopOrder>,
    pub(crate) remove_label: bool,
    pub(crate) wake_at: Option<Timestamp>,
}

impl Memory {
    pub(crate) fn see(&mut self, pod: Pod, now: Timestamp) {
        for status in &pod.containers {
            let (ContainerState::Running { .. }, Some(id)) = (&status.state, &status.container_id)
            else {
                continue;
            };
            let seen = self.seen_running.get(&status.name);
            if seen.is_none_or(|seen| seen.container_id != *id) {
                let seen = Seen {
                    container_id: id.clone(),
                    since: now,
                };
                self.seen_running.insert(status.name.clone(), seen);
            }
        }
        self.pod = Some(pod);
    }

    pub(crate) fn answered(&mut self, order: &OrderId, answer: OrderAnswer, now: Timestamp) {
        self.book.on_answer(order, answer, now);
    }

    pub(crate) fn unanswered(&mut self, order: &OrderId, now: Timestamp) {
        self.book.on_silence(order, Silence::Node, now);
    }

    pub(crate) fn reported(&mut self, report: &StopReport) {
        self.book.on_report(report);
    }

    pub(crate) fn wrote(&mut self, now: Timestamp) {
        self.status_written_at = Some(now);
    }

    pub(crate) fn wish(&mut self, crr: &Crr, now: Timestamp) -> Wish {
        let known = crr.containers.iter().filter_map(|container| {
            let id = OrderId::stop(&crr.uid, &container.name);
            Some((container.name.clone(), self.book.known(&id)?))
        });
        let snapshot = Snapshot {
            crr: crr.clone(),
            pod: self
                .pod
                .clone()
                .map_or(PodView::Unknown, |pod| PodView::Present(Box::new(pod))),
            orders: known.collect(),
            seen_running: self.seen_running.clone(),
            // No back-off bites in this world: the kubelet restarts whatever has ended.
            seen_down: BTreeMap::new(),
            dropped_at: BTreeMap::new(),
            nudged_at: None,
            turn: Turn::Mine,
            status_written_at: self.status_written_at,
            progress_every: crr_rules::progress_interval(1),
        };
        let plan = plan(&snapshot, now);
        let wanted = plan.order.filter(|_| plan.write.is_none());
        let send = wanted
            .as_ref()
            .and_then(|order| self.book.send_due(order, now));
        let again_at = wanted
            .as_ref()
            .and_then(|order| self.book.send_again_at(&order.id));
        let remove_label = plan.write == Some(Write::Close);
        Wish {
            status: match plan.write {
                Some(Write::Status(status)) => Some(status),
                Some(Write::AddFinalizer | Write::Gate(_) | Write::Close | Write::Delete)
                | None => None,
            },
            send,
            remove_label,
            wake_at: plan.wake_at.into_iter().chain(again_at).min(),
        }
    }
}

//! The leader's loop: wait, decide, act, report.
//!
//! Decides nothing itself: `crr_rules::Machine` does. The effects that it decides on are carried out in `effects.rs`.

use api_client::WatchEvent;
use bus::SubscribeError;
use crr_rules::{Event, Machine};
use futures::StreamExt;
use k8s_api::crd::ContainerRecreateRequest;
use model::order_id::Orderer;
use serde_json::json;
use service_kit::{Clock, StateCell};
use tokio::task::JoinError;
use tracing::warn;

use crate::{
    cluster::{self, Cluster},
    effects::Effects,
    metrics::Metrics,
};

/// Why a leader cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SchedulerError {
    #[error("failed to subscribe")]
    Subscribe(#[from] SubscribeError),
    #[error("the bus has closed the subscription to {0}")]
    Closed(&'static str),
    #[error("the watch of CRRs has ended")]
    Watch,
    /// The machine waits for its event: nothing more would be done for its CRR.
    #[error("a request's task was lost")]
    Request(#[source] JoinError),
}

/// The leader.
pub(crate) struct Scheduler {
    machine: Machine,
    effects: Effects,
    metrics: Metrics,
    state: StateCell,
    clock: Clock,
}

// === impl Scheduler ===

impl Scheduler {
    pub(crate) fn new(cluster: Cluster, bus: bus::Bus, metrics: Metrics, state: StateCell) -> Self {
        let clock = Clock::start();
        Self {
            machine: Machine::new(),
            effects: Effects::new(cluster, bus, metrics.clone(), clock),
            metrics,
            state,
            clock,
        }
    }

    /// Leads until it is dropped.
    ///
    /// # Errors
    /// The bus refuses a subscription, or a stream that should never end has ended.
    pub(crate) async fn run(mut self) -> Result<(), SchedulerError> {
        use SchedulerError::{Closed, Request, Watch};
        let bus = self.effects.bus().clone();
        let mut reports = bus.serve_reports(Orderer::Crr).await?;
        let mut presences = bus.watch_presence().await?;
        let mut questions = bus.serve_presence_questions().await?;
        let mut crrs = Box::pin(self.effects.cluster().watch_crrs());
        loop {
            let deadline = self.clock.wait(self.machine.next_deadline());
            let event = tokio::select! {
                change = crrs.next() => crr_event(change.ok_or(Watch)?),
                event = self.effects.next() => event.map_err(Request)?,
                report = reports.next() => {
                    Some(self.effects.on_report(report.ok_or(Closed("reports"))?))
                }
                presence = presences.next() => {
                    Some(Event::PresenceSeen(presence.ok_or(Closed("presence"))?.node))
                }
                question = questions.next() => {
                    Some(self.effects.on_question(question.ok_or(Closed("questions"))?))
                }
                () = deadline => Some(Event::Tick),
            };
            if let Some(event) = event {
                self.take(event);
            }
        }
    }

    fn take(&mut self, event: Event) {
        for effect in self.machine.on_event(event, self.clock.now()) {
            self.effects.perform(effect);
        }
        self.report();
    }

    fn report(&self) {
        let state = self.machine.state(self.clock.now());
        self.metrics.set_active(state.active);
        let active = state.some_active.iter().map(|active| {
            let crr = active.crr;
            json!({
                "crr": crr.key.to_string(),
                "pod": crr.pod.to_string(),
                "node": crr.node.as_ref().map(ToString::to_string),
                "phase": crr.status.phase,
                "isWriting": active.is_writing,
                "wakeInSeconds": active.wake_in.map(|wait| wait.as_secs()),
            })
        });
        self.state.store(json!({
            "leads": true,
            "busIsConnected": self.effects.bus().is_connected(),
            "active": state.active,
            "someActive": active.collect::<Vec<_>>(),
            "podsWatched": state.pods_watched,
            "ordersKnown": state.orders_known,
            "nodesSeen": state.nodes_seen,
        }));
    }
}

/// The machine's form of a change; `None` for a CRR without what the API server always sets.
fn crr_event(change: WatchEvent<ContainerRecreateRequest>) -> Option<Event> {
    Some(match change {
        WatchEvent::ListBegun => Event::CrrListBegun,
        WatchEvent::Seen(object) => match cluster::crr_of(&object) {
            Some(crr) => Event::CrrSeen(Box::new(crr)),
            None => Event::CrrUnreadable(k8s_api::convert::crr_key(&object)?),
        },
        WatchEvent::Unreadable(key) => {
            let crr = cluster::crr_key(&key);
            warn!(%crr, "CRR does not decode; it stays as it was last read");
            Event::CrrUnreadable(crr)
        }
        WatchEvent::Gone(key) => Event::CrrGone(cluster::crr_key(&key)),
        WatchEvent::ListEnded => Event::CrrListEnded,
    })
}

//! The leader's loop: wait, decide, store, act, report.
//!
//! Owns what the leader knows and the tasks it has under way. Decisions are `crr_rules::plan`'s; a status is
//! stored before the order that it allows is sent.

mod act;
mod state;
mod take;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api_client::WatchEvent;
use bus::{Bus, Delivery, SubscribeError};
use crr_rules::{DropBook, OrderBook, PodView, Silence, Turn, plan, progress_interval};
use futures::StreamExt;
use k8s_api::crd::ContainerRecreateRequest;
use model::{
    error_chain::ErrorChain,
    ids::{CrrKey, CrrUid, OrderId, PodKey},
    order::{DropAnswer, OrderAnswer, StopReport},
    presence::{Answer, Presence, Question},
};
use service_kit::{StateCell, WakeSet, clock};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinError, JoinSet},
    time::Instant,
};
use tracing::debug;

use crate::{
    cluster::{Cluster, WriteError},
    crrs::Crrs,
    metrics::Metrics,
    presence::PresenceTable,
};

/// After a write that failed for no reason of the object's.
const WRITE_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Everything that can wake the leader.
enum Event {
    /// A CRR was seen, or the watch began anew.
    Crr(Box<WatchEvent<ContainerRecreateRequest>>),
    /// A watched pod changed.
    Pod(PodKey, PodView),
    /// A write of a CRR was answered.
    Written(
        Writing,
        Result<Option<Box<ContainerRecreateRequest>>, WriteError>,
    ),
    /// A node answered one sending of an order, or did not.
    Answered(CrrKey, OrderId, Result<OrderAnswer, Silence>),
    /// A write of a pod's readiness gate was answered, with the pod as written.
    GateWritten(CrrKey, CrrUid, PodKey, Result<Option<PodView>, WriteError>),
    /// A drop was answered, or not.
    Dropped(CrrKey, OrderId, Result<DropAnswer, Silence>),
    /// A nudge was answered.
    Nudged(CrrKey, Result<(), WriteError>),
    /// An event was told, or given up.
    Told,
    /// A node reported.
    Report(Delivery<StopReport, ()>),
    /// A node gave a sign of life.
    Presence(Presence),
    /// Admission asks about a node and a pod.
    Asked(Delivery<Question, Answer>),
    /// A deadline came.
    Tick,
}

/// A write of a CRR that is under way.
struct Writing {
    crr: CrrKey,
    uid: CrrUid,
    /// The object's version that it was decided on.
    version: String,
    what: Written,
}

/// What is written of a CRR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Status,
    Finalizer,
    Close,
    Delete,
}

/// Why a leader cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriverError {
    #[error("failed to listen to the bus")]
    Subscribe(#[from] SubscribeError),
    #[error("the bus has closed the subscription to {0}")]
    Closed(&'static str),
    #[error("the watch of CRRs has ended")]
    Crrs,
    /// What it was to bring is waited for: nothing would be done for its CRR any more.
    #[error("a request's task was lost")]
    Request(#[source] JoinError),
}

/// A pod that a CRR needs.
struct WatchedPod {
    view: PodView,
    watch: AbortHandle,
}

/// The leader.
pub(crate) struct Driver {
    cluster: Cluster,
    bus: Bus,
    metrics: Metrics,
    state: StateCell,
    crrs: Crrs,
    /// Until the first list is whole, a CRR's turn is unknown.
    are_crrs_listed: bool,
    /// While the CRR watch lists: those not listed yet, which are gone when it is done.
    unlisted: BTreeSet<CrrKey>,
    pods: BTreeMap<PodKey, WatchedPod>,
    book: OrderBook,
    drops: DropBook,
    presence: PresenceTable,
    /// When to plan again for whom.
    wakes: WakeSet<CrrKey>,
    /// Requests under way; each ends as an event.
    requests: JoinSet<Event>,
    /// Pod watches; they end only by being dropped.
    watches: JoinSet<()>,
    pod_events: (mpsc::Sender<Event>, mpsc::Receiver<Event>),
}

// === impl Driver ===

impl Driver {
    pub(crate) fn new(cluster: Cluster, bus: Bus, metrics: Metrics, state: StateCell) -> Self {
        Self {
            cluster,
            bus,
            metrics,
            state,
            crrs: Crrs::default(),
            are_crrs_listed: false,
            unlisted: BTreeSet::new(),
            pods: BTreeMap::new(),
            book: OrderBook::default(),
            drops: DropBook::default(),
            presence: PresenceTable::new(Instant::now()),
            wakes: WakeSet::default(),
            requests: JoinSet::new(),
            watches: JoinSet::new(),
            pod_events: mpsc::channel(256),
        }
    }

    /// Leads until it is dropped.
    ///
    /// # Errors
    /// The bus refuses a subscription, or ends one.
    pub(crate) async fn run(mut self) -> Result<(), DriverError> {
        let mut reports = self.bus.serve_reports().await?;
        let mut presences = self.bus.watch_presence().await?;
        let mut questions = self.bus.serve_questions().await?;
        let mut crrs = Box::pin(self.cluster.watch_crrs());
        loop {
            let due = self.wakes.wait();
            let event = tokio::select! {
                event = crrs.next() => Event::Crr(Box::new(event.ok_or(DriverError::Crrs)?)),
                Some(event) = self.pod_events.1.recv() => event,
                Some(ended) = self.requests.join_next() => ended.map_err(DriverError::Request)?,
                report = reports.next() => Event::Report(report.ok_or(DriverError::Closed("reports"))?),
                presence = presences.next() => {
                    Event::Presence(presence.ok_or(DriverError::Closed("presence"))?.message)
                }
                question = questions.next() => {
                    Event::Asked(question.ok_or(DriverError::Closed("questions"))?)
                }
                () = due => Event::Tick,
            };
            self.handle(event).await;
        }
    }

    /// Takes an event in, and does what follows from it.
    async fn handle(&mut self, event: Event) {
        for crr in self.take(event).await {
            self.advance(&crr);
        }
        self.state.store(self.describe());
        let active = i64::try_from(self.crrs.unended().len());
        self.metrics.active.set(active.unwrap_or(i64::MAX));
    }

    /// Takes an event in and says which CRRs it may concern.
    async fn take(&mut self, event: Event) -> BTreeSet<CrrKey> {
        match event {
            Event::Crr(event) => self.on_crr(*event),
            Event::Pod(pod, view) => self.on_pod(&pod, view),
            Event::Written(writing, result) => self.on_written(&writing, result),
            Event::Answered(crr, order, answer) => {
                self.on_answered(&order, answer);
                BTreeSet::from([crr])
            }
            Event::GateWritten(crr, uid, pod, result) => {
                self.on_gate_written(crr, &uid, &pod, result)
            }
            Event::Dropped(crr, drop, answer) => {
                self.on_dropped(&drop, answer);
                BTreeSet::from([crr])
            }
            Event::Nudged(crr, result) => self.on_nudged(crr, result),
            Event::Told => BTreeSet::new(),
            Event::Report(delivery) => self.on_report(delivery).await,
            Event::Presence(presence) => {
                self.presence.saw(presence.node, Instant::now());
                BTreeSet::new()
            }
            Event::Asked(question) => {
                let answer = self.answer(&question.message);
                if let Err(error) = question.reply.send(answer).await {
                    debug!(error = %ErrorChain(&error), "Admission was not answered");
                }
                BTreeSet::new()
            }
            // Whoever waits for the answer to a write is planned for when it comes.
            Event::Tick => self.wakes.take_due(Instant::now()),
        }
    }

    fn answer(&self, question: &Question) -> Answer {
        let last_seen = self.presence.last_seen(&question.node, Instant::now());
        let of_pod = question.pod.iter().flat_map(|pod| self.crrs.of_pod(pod));
        let mut active: Vec<_> = of_pod
            .filter(|tracked| tracked.is_active())
            .map(|tracked| (tracked.crr.created_at, tracked.crr.key.name.clone()))
            .collect();
        active.sort();
        Answer {
            last_seen,
            active_crrs: active.into_iter().map(|(_, name)| name).collect(),
        }
    }

    /// Decides what a CRR needs now, and begins it.
    fn advance(&mut self, crr: &CrrKey) {
        let now = clock::now();
        let Some(tracked) = self.crrs.get_mut(crr) else {
            return;
        };
        let view = self
            .pods
            .get(&tracked.crr.pod)
            .map_or(PodView::Unknown, |pod| pod.view.clone());
        if let PodView::Present(pod) = &view {
            tracked.see(pod, now);
        }
        if tracked.is_writing || tracked.is_outdated || !self.are_crrs_listed {
            return;
        }
        let turn = self.turn(crr);
        let books = (&self.book, &self.drops);
        let progress_every = progress_interval(self.crrs.unended().len());
        let Some(tracked) = self.crrs.get_mut(crr) else {
            return;
        };
        let snapshot = tracked.snapshot(view, turn, books, progress_every);
        let plan = plan(&snapshot, now);
        // Its first write is its beginning, answered or not.
        tracked.has_begun |= snapshot.turn == Turn::Mine && plan.write.is_some();
        self.act(crr, plan, now);
    }

    /// Whether a CRR is the one of its pod that may act: the one at work, else the oldest.
    fn turn(&self, crr: &CrrKey) -> Turn {
        let Some(tracked) = self.crrs.get(crr) else {
            return Turn::Mine;
        };
        let of_pod = self.crrs.of_pod(&tracked.crr.pod);
        let active = of_pod.filter(|other| other.is_active());
        let first = active.min_by_key(|other| {
            let name = other.crr.key.name.clone();
            (!other.is_at_work(), other.crr.created_at, name)
        });
        match first {
            Some(first) if first.crr.key != *crr => Turn::Behind(first.crr.key.name.clone()),
            Some(_) | None => Turn::Mine,
        }
    }
}

#[cfg(test)]
mod tests;

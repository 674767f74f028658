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

use bus::{Bus, Delivery};
use crr_rules::{DropBook, OrderBook, PodView, Silence, Turn, plan, progress_interval};
use futures::StreamExt;
use k8s_api::crd::ContainerRecreateRequest;
use kube::runtime::watcher;
use model::{
    ids::{CrrKey, OrderId, PodKey},
    order::{DropAnswer, OrderAnswer, StopReport},
    presence::{Answer, Presence, Question},
};
use service_kit::{ErrorChain, StateCell, clock};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::Instant,
};
use tracing::{debug, warn};

use crate::{
    cluster::{Cluster, WriteError},
    metrics::Metrics,
    presence::PresenceTable,
    tracked::{Tracked, is_ended},
};

/// The longest the loop waits without looking at its deadlines.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// After a write that failed for no reason of the object's.
const WRITE_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Everything that can wake the leader.
enum Event {
    /// A CRR was seen, or the watch began anew.
    Crr(Box<watcher::Event<ContainerRecreateRequest>>),
    /// A watched pod changed.
    Pod(PodKey, PodView),
    /// A write of a CRR was answered.
    Written(
        CrrKey,
        Written,
        Result<Option<Box<ContainerRecreateRequest>>, WriteError>,
    ),
    /// A node answered one sending of an order, or did not.
    Answered(CrrKey, OrderId, Result<OrderAnswer, Silence>),
    /// A write of a pod's readiness gate was answered, with the pod as written.
    GateWritten(CrrKey, PodKey, Result<Option<PodView>, WriteError>),
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

/// Which write of a CRR it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Status,
    Finalizer,
    Close,
    Delete,
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
    tracked: BTreeMap<CrrKey, Tracked>,
    /// How many of them have not ended.
    active: usize,
    /// While the CRR watch lists: those not listed yet, which are gone when it is done.
    unlisted: BTreeSet<CrrKey>,
    pods: BTreeMap<PodKey, WatchedPod>,
    book: OrderBook,
    drops: DropBook,
    presence: PresenceTable,
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
            tracked: BTreeMap::new(),
            active: 0,
            unlisted: BTreeSet::new(),
            pods: BTreeMap::new(),
            book: OrderBook::default(),
            drops: DropBook::default(),
            presence: PresenceTable::new(Instant::now()),
            requests: JoinSet::new(),
            watches: JoinSet::new(),
            pod_events: mpsc::channel(256),
        }
    }

    /// Leads until it is dropped.
    ///
    /// # Errors
    /// The bus refuses a subscription.
    pub(crate) async fn run(mut self) -> Result<(), bus::SubscribeError> {
        let mut reports = self.bus.serve_reports().await?;
        let mut presences = self.bus.watch_presence().await?;
        let mut questions = self.bus.serve_questions().await?;
        let mut crrs = Box::pin(self.cluster.watch_crrs());
        loop {
            let wake_at = self.wake_after();
            let event = tokio::select! {
                Some(event) = crrs.next() => Event::Crr(Box::new(event)),
                Some(event) = self.pod_events.1.recv() => event,
                Some(event) = self.requests.join_next() => match event {
                    Ok(event) => event,
                    // A request's task neither panics nor is aborted while the driver lives.
                    Err(error) => { warn!(%error, "A request's task was lost"); continue }
                },
                Some(report) = reports.next() => Event::Report(report),
                Some(presence) = presences.next() => Event::Presence(presence.message),
                Some(question) = questions.next() => Event::Asked(question),
                () = tokio::time::sleep(wake_at) => Event::Tick,
            };
            let touched = self.take(event).await;
            for crr in touched {
                self.advance(&crr);
            }
            self.state.store(self.describe());
            self.active = self.count_active();
            let active = i64::try_from(self.active).unwrap_or(i64::MAX);
            self.metrics.active.set(active);
        }
    }

    /// Takes an event in and says which CRRs it may concern.
    async fn take(&mut self, event: Event) -> BTreeSet<CrrKey> {
        match event {
            Event::Crr(event) => self.on_crr(*event),
            Event::Pod(pod, view) => self.on_pod(&pod, view),
            Event::Written(crr, write, result) => self.on_written(crr, write, result),
            Event::Answered(crr, order, answer) => {
                self.on_answered(&order, answer);
                BTreeSet::from([crr])
            }
            Event::GateWritten(crr, pod, result) => self.on_gate_written(&crr, &pod, result),
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
            Event::Tick => {
                let now = clock::now();
                let is_due = |tracked: &Tracked| tracked.wake_at.is_some_and(|at| at <= now);
                let due = self.tracked.iter().filter(|(_, tracked)| is_due(tracked));
                due.map(|(crr, _)| crr.clone()).collect()
            }
        }
    }

    fn answer(&self, question: &Question) -> Answer {
        let last_seen = self.presence.last_seen(&question.node, Instant::now());
        let mut active: Vec<_> = self
            .tracked
            .values()
            .filter(|tracked| {
                tracked.is_active() && question.pod.as_ref() == Some(&tracked.crr.pod)
            })
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
        let Some(tracked) = self.tracked.get_mut(crr) else {
            return;
        };
        let view = self
            .pods
            .get(&tracked.crr.pod)
            .map_or(PodView::Unknown, |pod| pod.view.clone());
        if let PodView::Present(pod) = &view {
            tracked.see(pod, now);
        }
        if tracked.is_writing || tracked.is_outdated {
            return;
        }
        let turn = self.turn(crr);
        let Some(tracked) = self.tracked.get(crr) else {
            return;
        };
        let books = (&self.book, &self.drops);
        let progress_every = progress_interval(self.active);
        let snapshot = tracked.snapshot(view, turn, books, progress_every);
        let plan = plan(&snapshot, now);
        self.act(crr, plan, now);
    }

    /// Whether a CRR is the one of its pod that may act: the one at work, else the oldest.
    fn turn(&self, crr: &CrrKey) -> Turn {
        let Some(tracked) = self.tracked.get(crr) else {
            return Turn::Mine;
        };
        let pod = &tracked.crr.pod;
        let active = self
            .tracked
            .values()
            .filter(|other| other.is_active() && other.crr.pod == *pod);
        let first = active.min_by_key(|other| {
            let is_waiting = other.crr.status.phase != Some(model::phase::CrrPhase::Recreating);
            (is_waiting, other.crr.created_at, other.crr.key.name.clone())
        });
        match first {
            Some(first) if first.crr.key != *crr => Turn::Behind(first.crr.key.name.clone()),
            Some(_) | None => Turn::Mine,
        }
    }

    fn crrs_of(&self, pod: &PodKey) -> BTreeSet<CrrKey> {
        let crrs = self
            .tracked
            .iter()
            .filter(|(_, tracked)| tracked.crr.pod == *pod);
        crrs.map(|(crr, _)| crr.clone()).collect()
    }

    fn wake_after(&self) -> Duration {
        let next = self
            .tracked
            .values()
            .filter_map(|tracked| tracked.wake_at)
            .min();
        let wait = next.map(|at| at.duration_since(clock::now()));
        wait.map_or(LONGEST_WAIT, |wait| {
            wait.try_into().unwrap_or(Duration::ZERO)
        })
        .min(LONGEST_WAIT)
    }

    fn count_active(&self) -> usize {
        let tracked = self.tracked.values();
        tracked.filter(|tracked| !is_ended(&tracked.crr)).count()
    }
}

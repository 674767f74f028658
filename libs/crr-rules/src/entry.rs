//! One CRR in the leader's memory.
//!
//! Owns what is known of it beside the order book: the object as last read or written, the write under way, and what was
//! seen of its pod. A new leader reads the objects again and measures times again.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use model::{
    crr::Crr,
    ids::ContainerName,
    order::MAX_GRACE,
    order_id::{OrderId, Owner, Task},
    phase::CrrPhase,
    pod::{ContainerState, Pod},
    time::{Monotonic, after},
    watch::Version,
};
use order_rules::OrderBook;

use crate::snapshot::{PodView, Seen, Snapshot, Turn};

/// How long after its grace the report of a stop is waited for once its CRR has ended.
const LATE_REPORT: Duration = Duration::from_secs(600);

/// A CRR and what is known around it.
#[derive(Clone, Debug)]
pub(crate) struct CrrEntry {
    pub(crate) crr: Crr,
    /// The newest version that the watch has shown; answers to our own writes may be ahead of it.
    shown: Version,
    pub(crate) request: Request,
    /// It had its turn and began to write: an older CRR that appears later has to wait.
    pub(crate) has_begun: bool,
    /// Writes that failed one after the other.
    pub(crate) failures: u32,
    pub(crate) status_written_at: Option<Monotonic>,
    seen_running: BTreeMap<ContainerName, Seen>,
    seen_down: BTreeMap<ContainerName, Seen>,
    pub(crate) nudged_at: Option<Monotonic>,
    /// Names of the Kubernetes events that were published.
    pub(crate) published: BTreeSet<String>,
}

/// The write of a CRR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// None is under way.
    Idle,
    /// One is under way; nothing is planned before its answer.
    UnderWay {
        target: Target,
        /// The CRR's version on which it was decided.
        version: String,
    },
    /// One met a newer object; nothing is planned before that object arrives.
    Outdated,
}

/// What a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The CRR's status.
    Status,
    /// The CRR's metadata, or the CRR as a whole.
    Object,
    /// The pod's readiness gate.
    Gate,
}

// === impl CrrEntry ===

impl CrrEntry {
    pub(crate) fn new(crr: Crr) -> Self {
        Self {
            crr,
            shown: Version::default(),
            request: Request::Idle,
            has_begun: false,
            failures: 0,
            status_written_at: None,
            seen_running: BTreeMap::new(),
            seen_down: BTreeMap::new(),
            nudged_at: None,
            published: BTreeSet::new(),
        }
    }

    /// Takes a newer object and ignores an older one. Returns true if the CRR ended by it.
    pub(crate) fn update(&mut self, crr: Crr) -> bool {
        if Version::parse(&crr.version) < self.version() {
            return false;
        }
        let was_ended = self.is_ended();
        if self.request == Request::Outdated {
            self.request = Request::Idle; // Outdated => Idle
        }
        self.crr = crr;
        !was_ended && self.is_ended()
    }

    /// Records since when the pod's present instances have been seen running, or down.
    pub(crate) fn record_pod(&mut self, pod: &Pod, now: Monotonic) {
        for container in &self.crr.containers {
            let name = &container.name;
            let status = pod.container(name);
            let Some((status, id)) =
                status.and_then(|status| Some((status, status.container_id.as_ref()?)))
            else {
                continue;
            };
            let (holds, ceases) = match &status.state {
                ContainerState::Running { .. } => (&mut self.seen_running, &mut self.seen_down),
                ContainerState::Waiting { .. } | ContainerState::Terminated { .. } => {
                    (&mut self.seen_down, &mut self.seen_running)
                }
            };
            ceases.remove(name);
            if holds.get(name).is_none_or(|seen| seen.container_id != *id) {
                let seen = Seen {
                    container_id: id.clone(),
                    since: now,
                };
                holds.insert(name.clone(), seen);
            }
        }
    }

    /// The ids of all orders that this CRR may give, of one kind.
    pub(crate) fn order_ids(&self, task: Task) -> impl Iterator<Item = OrderId> + '_ {
        let containers = self.crr.containers.iter();
        containers.map(move |container| self.order_id(task, &container.name))
    }

    fn order_id(&self, task: Task, container: &ContainerName) -> OrderId {
        OrderId::new(Owner::Crr(self.crr.uid.clone()), task, container.clone())
    }

    /// Everything that a plan for this CRR is made from.
    pub(crate) fn snapshot(
        &self,
        pod: PodView,
        turn: Turn,
        book: &OrderBook,
        progress_every: Duration,
    ) -> Snapshot {
        let names = || self.crr.containers.iter().map(|it| &it.name);
        let known = names().filter_map(|name| {
            let known = book.known(&self.order_id(Task::Stop, name))?;
            Some((name.clone(), known.clone()))
        });
        let removed = names().filter_map(|name| {
            let removed_at = book.done_at(&self.order_id(Task::RemoveDeadInstances, name))?;
            Some((name.clone(), removed_at))
        });
        Snapshot {
            crr: self.crr.clone(),
            pod,
            orders: known.collect(),
            seen_running: self.seen_running.clone(),
            seen_down: self.seen_down.clone(),
            removed_at: removed.collect(),
            nudged_at: self.nudged_at,
            turn,
            status_written_at: self.status_written_at,
            progress_every,
        }
    }

    pub(crate) fn version(&self) -> Version {
        Version::parse(&self.crr.version)
    }

    /// Records that the watch has shown a version.
    pub(crate) fn record_watched(&mut self, version: &str) {
        self.shown = self.shown.max(Version::parse(version));
    }

    /// True once the watch has caught up with our own writes. A CRR forgotten earlier would be taken for a new one when
    /// the watch shows an older object.
    pub(crate) fn has_watch_caught_up(&self) -> bool {
        self.shown >= self.version()
    }

    /// When the report of a stop that outlasted its CRR is no longer waited for: a node without that pod never sends it.
    pub(crate) fn last_report_at(&self) -> Timestamp {
        let grace = self.crr.strategy.termination_grace.unwrap_or_default();
        let ended_at = self.crr.status.completed_at.unwrap_or(self.crr.created_at);
        after(ended_at, grace.min(MAX_GRACE) + LATE_REPORT)
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.crr.status.phase == Some(CrrPhase::Completed)
    }

    pub(crate) fn is_active(&self) -> bool {
        !self.is_ended() && !self.crr.is_being_deleted
    }

    /// True if other CRRs of its pod have to wait for its end. A finalizer is the beginning of a drain.
    pub(crate) fn is_at_work(&self) -> bool {
        let phase = self.crr.status.phase;
        self.has_begun || phase == Some(CrrPhase::Recreating) || self.crr.has_finalizer()
    }

    /// True if its pod has to be watched: while it is active, or while it may hold the pod's readiness.
    pub(crate) fn needs_pod(&self) -> bool {
        self.is_active() || self.crr.has_finalizer()
    }
}

//! One CRR in the leader's memory.
//!
//! Owns what is known of it beside the order book: the object as last read or written, and its span. All of
//! it can be read again from the API server.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crr_rules::{DropBook, OrderBook, PodView, Seen, Snapshot, Turn};
use jiff::Timestamp;
use model::{
    crr::Crr,
    ids::{ContainerName, OrderId},
    order::MAX_GRACE,
    phase::CrrPhase,
    pod::{ContainerState, Pod},
    time::after,
    watch::Version,
};
use service_kit::trace;
use tracing::{Span, info_span};

/// How long after its grace a stop's report is waited for, when its CRR has ended.
const LATE_REPORT: Duration = Duration::from_secs(600);

pub(crate) struct Tracked {
    pub(crate) crr: Crr,
    /// The object's resourceVersion: guards writes, and tells an older object from a newer one.
    pub(crate) version: String,
    /// The newest version that the watch has shown.
    shown: Version,
    /// A write is on its way; nothing is planned before its answer.
    pub(crate) is_writing: bool,
    /// A write met a newer object: its arrival is waited for.
    pub(crate) is_outdated: bool,
    /// It had its turn and began to write: whoever is older and comes later has to wait.
    pub(crate) has_begun: bool,
    pub(crate) status_written_at: Option<Timestamp>,
    seen_running: BTreeMap<ContainerName, Seen>,
    seen_down: BTreeMap<ContainerName, Seen>,
    pub(crate) nudged_at: Option<Timestamp>,
    /// Names of the events that were told.
    pub(crate) told: BTreeSet<String>,
    /// From first sight to completion.
    pub(crate) span: Span,
}

// === impl Tracked ===

impl Tracked {
    pub(crate) fn new(crr: Crr, version: String) -> Self {
        let span = if is_ended(&crr) {
            Span::none()
        } else {
            let span = info_span!("recreate", crr = %crr.key, pod = %crr.pod.name, uid = %crr.uid);
            if let Some(trace_parent) = &crr.trace_parent {
                trace::set_parent(&span, trace_parent);
            }
            span
        };
        Self {
            crr,
            version,
            shown: Version::default(),
            is_writing: false,
            is_outdated: false,
            has_begun: false,
            status_written_at: None,
            seen_running: BTreeMap::new(),
            seen_down: BTreeMap::new(),
            nudged_at: None,
            told: BTreeSet::new(),
            span,
        }
    }

    /// Takes a newer object; an older one, overtaken by our own write's answer, is dropped.
    /// Says whether the CRR ended by it.
    pub(crate) fn update(&mut self, crr: Crr, version: String) -> bool {
        if Version::parse(&version) < Version::parse(&self.version) {
            return false;
        }
        let was_ended = is_ended(&self.crr);
        self.is_outdated = false;
        self.version = version;
        self.crr = crr;
        if is_ended(&self.crr) {
            self.span = Span::none(); // Dropping the span ends it.
        }
        !was_ended && is_ended(&self.crr)
    }

    /// Notes since when the pod's present instances have been seen running, or down.
    pub(crate) fn see(&mut self, pod: &Pod, now: Timestamp) {
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

    pub(crate) fn order_ids(&self) -> impl Iterator<Item = OrderId> + '_ {
        self.crr
            .containers
            .iter()
            .map(|container| OrderId::stop(&self.crr.uid, &container.name))
    }

    pub(crate) fn drop_ids(&self) -> impl Iterator<Item = OrderId> + '_ {
        self.crr
            .containers
            .iter()
            .map(|container| OrderId::drop_dead(&self.crr.uid, &container.name))
    }

    pub(crate) fn snapshot(
        &self,
        pod: PodView,
        turn: Turn,
        (book, drops): (&OrderBook, &DropBook),
        progress_every: Duration,
    ) -> Snapshot {
        let known = self.crr.containers.iter().filter_map(|container| {
            let id = OrderId::stop(&self.crr.uid, &container.name);
            Some((container.name.clone(), book.known(&id)?))
        });
        let dropped = self.crr.containers.iter().filter_map(|container| {
            let id = OrderId::drop_dead(&self.crr.uid, &container.name);
            Some((container.name.clone(), drops.dropped_at(&id)?))
        });
        Snapshot {
            crr: self.crr.clone(),
            pod,
            orders: known.collect(),
            seen_running: self.seen_running.clone(),
            seen_down: self.seen_down.clone(),
            dropped_at: dropped.collect(),
            nudged_at: self.nudged_at,
            turn,
            status_written_at: self.status_written_at,
            progress_every,
        }
    }

    /// Notes that the watch has come to a version.
    pub(crate) fn show(&mut self, version: &str) {
        self.shown = self.shown.max(Version::parse(version));
    }

    /// Whether the watch has come to what is known from the answers to our own writes. Until then it may still show an
    /// older object, which nobody would know for one, were the CRR forgotten.
    pub(crate) fn is_shown(&self) -> bool {
        self.shown >= Version::parse(&self.version)
    }

    /// When a stop that its end has overtaken is given up: a node whose pod is gone, or that is gone itself, reports
    /// nothing more.
    pub(crate) fn last_report_at(&self) -> Timestamp {
        let grace = self.crr.strategy.termination_grace.unwrap_or_default();
        let ended_at = self.crr.status.completed_at.unwrap_or(self.crr.created_at);
        after(ended_at, grace.min(MAX_GRACE) + LATE_REPORT)
    }

    pub(crate) fn is_active(&self) -> bool {
        !is_ended(&self.crr) && !self.crr.is_being_deleted
    }

    /// Whether others of its pod have to wait for its end. A finalizer is a drain's beginning.
    pub(crate) fn is_at_work(&self) -> bool {
        let phase = self.crr.status.phase;
        self.has_begun || phase == Some(CrrPhase::Recreating) || self.crr.has_finalizer()
    }

    /// Whether its pod has to be watched: also while its readiness may be held.
    pub(crate) fn needs_pod(&self) -> bool {
        self.is_active() || self.crr.has_finalizer()
    }
}

pub(crate) fn is_ended(crr: &Crr) -> bool {
    crr.status.phase == Some(CrrPhase::Completed)
}

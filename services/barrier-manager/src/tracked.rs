//! What the leader remembers of one pod: what it saw, and what is under way.
//!
//! All but hints and clocks is read again from the API server after a change of leaders.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use barrier_rules::{CurrentLevel, MapView, Snapshot, Stage};
use jiff::Timestamp;
use model::{
    ids::{ContainerId, ContainerName},
    launch::{LaunchPod, Priority},
};
use service_kit::{backoff::Backoff, trace};
use tracing::{Span, info, info_span};

use crate::metrics::Metrics;

/// The bounds of the pause after a write that failed for no reason of the object's.
const WRITE_AGAIN_AFTER: Duration = Duration::from_secs(1);
const LONGEST_WRITE_PAUSE: Duration = Duration::from_secs(30);

/// A pod with launch barriers.
pub(crate) struct Tracked {
    pub(crate) launch: LaunchPod,
    pub(crate) started: BTreeMap<ContainerName, ContainerId>,
    /// A write is under way; its answer is planned with.
    pub(crate) is_writing: bool,
    /// The events told, by name.
    pub(crate) told: BTreeSet<String>,
    pub(crate) backoff: Backoff,
    current: Option<CurrentLevel>,
    /// While it launches: the whole and the present level.
    spans: Option<(Span, Span)>,
    /// It was seen launched: what becomes of its containers later is no launch.
    is_launched: bool,
}

// === impl Tracked ===

impl Tracked {
    pub(crate) fn new(launch: LaunchPod) -> Self {
        Self {
            launch,
            started: BTreeMap::new(),
            is_writing: false,
            told: BTreeSet::new(),
            backoff: Backoff::new(WRITE_AGAIN_AFTER, LONGEST_WRITE_PAUSE),
            current: None,
            spans: None,
            is_launched: false,
        }
    }

    /// Notes where the launch stands now: spans, times, one log line for each transition.
    pub(crate) fn note(&mut self, stage: &Stage, metrics: &Metrics, now: Timestamp) {
        let level = match stage {
            Stage::Waiting { level, .. } if !self.is_launched => Some(*level),
            Stage::Waiting { .. } | Stage::Launched | Stage::Blocked | Stage::Over => None,
        };
        if self.current.map(|current| current.level) != level {
            self.end_level(metrics, now);
            self.current = level.map(|level| CurrentLevel { level, since: now });
            match level {
                Some(level) => self.begin_level(level),
                None => self.end(stage, metrics),
            }
        }
        self.is_launched |= *stage == Stage::Launched;
    }

    fn begin_level(&mut self, level: Priority) {
        // What a pod that a former leader launched still waits for began before us.
        if self.launch.is_completed && self.spans.is_none() {
            return;
        }
        let pod = &self.launch.pod.key;
        let whole = match self.spans.take() {
            Some((whole, _)) => whole,
            None => {
                let whole = info_span!("launch", ns = %pod.namespace, pod = %pod.name, uid = %self.launch.pod.uid);
                if let Some(trace_parent) = &self.launch.trace_parent {
                    trace::set_parent(&whole, trace_parent);
                }
                whole
            }
        };
        let of_level = self.launch.containers.iter();
        let names: Vec<_> = of_level
            .filter(|container| container.priority == level)
            .map(|container| container.name.as_str())
            .collect();
        let part = info_span!(parent: &whole, "level", %level, containers = names.join(","));
        self.spans = Some((whole, part));
    }

    fn end_level(&mut self, metrics: &Metrics, now: Timestamp) {
        if let (Some(current), Some(_)) = (self.current, &self.spans) {
            let took = now.duration_since(current.since);
            metrics.level_duration.observe(took.as_secs_f64());
            let seconds = took.as_secs_f64();
            info!(pod = %self.launch.pod.key, level = %current.level, seconds, "Level ends");
        }
    }

    fn end(&mut self, stage: &Stage, metrics: &Metrics) {
        let was_launching = self.spans.take().is_some();
        if was_launching && *stage == Stage::Launched {
            metrics.launched.inc();
            info!(pod = %self.launch.pod.key, "Launched");
        }
    }

    /// The span that work for the launch belongs into.
    pub(crate) fn span(&self) -> Span {
        let spans = self.spans.as_ref();
        spans.map_or_else(Span::none, |(_, level)| level.clone())
    }

    pub(crate) fn is_launching(&self) -> bool {
        self.current.is_some()
    }

    pub(crate) fn snapshot<'a>(&'a self, map: &'a MapView, stuck_after: Duration) -> Snapshot<'a> {
        Snapshot {
            pod: &self.launch,
            map,
            started: &self.started,
            current: self.current,
            stuck_after,
        }
    }
}

/// Resource versions of one resource can be compared as numbers (KEP-5504); what is none counts as newest.
pub(crate) fn parse_version(version: &str) -> u64 {
    version.parse().unwrap_or(u64::MAX)
}

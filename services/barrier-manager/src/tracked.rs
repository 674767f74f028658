//! What the leader remembers of one pod: what it saw, and what is under way.
//!
//! All but hints and clocks is read again from the API server after a change of leaders.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use barrier_rules::{CurrentLevel, Looked, MapView, Snapshot, Stage, Waiting, may_start};
use jiff::Timestamp;
use model::{
    ids::{ContainerId, ContainerName, NodeName},
    launch::{LaunchPod, Priority, Started},
};
use serde_json::{Value, json};
use service_kit::{backoff::Backoff, trace};
use tracing::{Span, info, info_span};

use crate::metrics::Metrics;

/// The bounds of the pause after a write that failed for no reason of the object's.
const WRITE_AGAIN_AFTER: Duration = Duration::from_secs(1);
const LONGEST_WRITE_PAUSE: Duration = Duration::from_secs(30);

/// A pod with launch barriers.
pub(crate) struct Tracked {
    pub(crate) launch: LaunchPod,
    started: BTreeMap<ContainerName, ContainerId>,
    /// A write is under way; its answer is planned with.
    pub(crate) is_writing: bool,
    /// The events told, by name.
    pub(crate) told: BTreeSet<String>,
    pub(crate) backoff: Backoff,
    current: Option<CurrentLevel>,
    /// When each level was first waited for while the pod had a node: before, no kubelet could have brought it up.
    since: BTreeMap<Priority, Timestamp>,
    /// What the level waits for.
    waiting: Vec<Waiting>,
    /// Something else was there than was known, so many times one after the other.
    pub(crate) surprises: u32,
    /// The last look at a ConfigMap that our watch does not show.
    pub(crate) looked: Option<Looked>,
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
            since: BTreeMap::new(),
            waiting: Vec::new(),
            surprises: 0,
            looked: None,
            spans: None,
            is_launched: false,
        }
    }

    /// Takes a node's word and says whether it counts: only of a container behind a barrier, in a pod of that very
    /// node. A stolen node speaks for itself alone (docs/protocol.md).
    pub(crate) fn hear(&mut self, node: &NodeName, started: Started) -> bool {
        let pod = &self.launch.pod;
        let mut containers = self.launch.containers.iter();
        let counts = pod.node.as_ref() == Some(node)
            && pod.uid == started.pod_uid
            && containers.any(|container| container.name == started.container);
        if counts {
            self.started.insert(started.container, started.container_id);
        }
        counts
    }

    /// Notes that a ConfigMap was fetched that our watch does not show.
    pub(crate) fn look(&mut self, is_the_same: bool, now: Timestamp) {
        let before = self.looked.filter(|_| is_the_same);
        let in_vain = before.map_or(0, |looked| looked.in_vain.saturating_add(1));
        self.looked = Some(Looked { at: now, in_vain });
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
        let was_seen = !self.launch.is_completed || !self.since.is_empty();
        if let Some(level) = level
            && may_start(&self.launch.pod)
            && was_seen
        {
            self.since.entry(level).or_insert(now);
        }
        self.waiting = match stage {
            Stage::Waiting { containers, .. } if level.is_some() => containers.clone(),
            Stage::Waiting { .. } | Stage::Launched | Stage::Blocked | Stage::Over => Vec::new(),
        };
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

    /// As `/state` shows it.
    pub(crate) fn describe(&self) -> Value {
        let waiting = self.waiting.iter();
        let waiting = waiting.map(|it| (it.container.to_string(), json!(it.why)));
        json!({
            "pod": self.launch.pod.key.to_string(),
            "level": self.current.map(|current| current.level.key()),
            "waitingFor": waiting.collect::<serde_json::Map<_, _>>(),
            "isWriting": self.is_writing,
        })
    }

    pub(crate) fn is_launching(&self) -> bool {
        self.current.is_some()
    }

    pub(crate) fn snapshot<'a>(&'a self, map: &'a MapView, stuck_after: Duration) -> Snapshot<'a> {
        Snapshot {
            pod: &self.launch,
            map,
            started: &self.started,
            current: self.current.and_then(|CurrentLevel { level, .. }| {
                let since = *self.since.get(&level)?;
                Some(CurrentLevel { level, since })
            }),
            looked: self.looked,
            stuck_after,
        }
    }
}

#[cfg(test)]
mod tests {
    use barrier_rules::plan;
    use prometheus_client::registry::Registry;

    use super::*;

    fn pod(node: Option<&str>) -> LaunchPod {
        let source = json!({ "configMapKeyRef": { "name": "web-barrier", "key": "p_0" } });
        let object = json!({
            "metadata": { "name": "web", "namespace": "shop", "uid": "u" },
            "spec": {
                "nodeName": node,
                "containers": [{
                    "name": "app",
                    "env": [{ "name": "KRUISE_CONTAINER_BARRIER", "valueFrom": source }],
                }],
            },
        });
        let object = serde_json::from_value(object).unwrap();
        k8s_api::convert::launch_pod_from_object(&object).unwrap()
    }

    #[test]
    fn a_node_speaks_for_its_own_pods_and_their_containers_alone() {
        let word = |uid: &str, container: &str| Started {
            pod: pod(None).pod.key,
            pod_uid: uid.into(),
            container: container.into(),
            container_id: "c1".into(),
        };
        let mut tracked = Tracked::new(pod(Some("node-1")));
        for (node, uid, container) in [
            ("node-2", "u", "app"),
            ("", "u", "app"),
            ("node-1", "other", "app"),
            ("node-1", "u", "invented"),
        ] {
            assert!(!tracked.hear(&node.into(), word(uid, container)));
        }
        assert!(tracked.started.is_empty());
        assert!(tracked.hear(&"node-1".into(), word("u", "app")));
        assert_eq!(tracked.started.len(), 1);
        let mut homeless = Tracked::new(pod(None));
        assert!(!homeless.hear(&"".into(), word("u", "app")));
    }

    #[test]
    fn the_time_without_a_node_is_no_level_time() {
        let metrics = Metrics::register(&mut Registry::default());
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let stuck_after = Duration::from_secs(60);
        let mut tracked = Tracked::new(pod(None));
        let mut events_at = |node, seconds| {
            tracked.launch = pod(node);
            let plan = plan(
                &tracked.snapshot(&MapView::Absent, stuck_after),
                at(seconds),
            );
            tracked.note(&plan.stage, &metrics, at(seconds));
            plan.events.len()
        };
        assert_eq!(events_at(None, 0), 0);
        assert_eq!(events_at(Some("node-1"), 600), 0);
        assert_eq!(events_at(Some("node-1"), 659), 0);
        assert_eq!(events_at(Some("node-1"), 660), 1);
    }
}

//! The memory of one pod: its last known state, the request under way, and the progress of its launch.
//!
//! All of it except reports of nodes and clocks is read again from the API server after a change of leaders.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use model::{
    ids::{ContainerId, ContainerName, NodeName},
    launch::{LaunchPod, Priority, Started},
    retry::API_WRITE,
    time::Monotonic,
    watch::Version,
};

use super::{Step, progress::Progress};
use crate::{
    container::Waiting,
    effect::{Action, Effect},
    messages::LaunchEvent,
    plan::{Stage, may_start, plan},
    snapshot::{CurrentLevel, MapPoll, MapView, Snapshot},
};

/// A pod with launch barriers.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub(super) pod: LaunchPod,
    /// The instances that the pod's node reported as started.
    started: BTreeMap<ContainerName, ContainerId>,
    pub(super) request: Request,
    pub(super) progress: Progress,
    /// The containers that the level waits for.
    pub(super) waiting: Vec<Waiting>,
    /// When each level was first waited for while the kubelet could start its containers.
    since: BTreeMap<Priority, Monotonic>,
    /// Names of the events that were published.
    published: BTreeSet<String>,
    /// Retries since the last write that succeeded.
    retries: u32,
    /// Writes that met another ConfigMap than was known, without another result in between.
    pub(super) consecutive_conflicts: u32,
    /// The last fetch of a ConfigMap that the watch does not show.
    pub(super) poll: Option<MapPoll>,
}

/// The request under way for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// None: the pod is planned with every event.
    Idle,
    /// `Action::Write`; its answer is planned with.
    Writing,
    /// `Action::FetchMap`; its answer is planned with.
    Fetching,
}

// === impl Launch ===

impl Launch {
    pub(super) fn new(pod: LaunchPod) -> Self {
        Self {
            pod,
            started: BTreeMap::new(),
            request: Request::Idle,
            progress: Progress::Resting,
            waiting: Vec::new(),
            since: BTreeMap::new(),
            published: BTreeSet::new(),
            retries: 0,
            consecutive_conflicts: 0,
            poll: None,
        }
    }

    /// Takes the pod's state over, unless a newer one is known: an answer to our own write may overtake the watch.
    pub(super) fn update(&mut self, pod: LaunchPod) {
        if Version::parse(&self.pod.pod.version) <= Version::parse(&pod.pod.version) {
            self.pod = pod;
        }
    }

    /// Takes a node's report over. Returns false for a report that does not count: a node reports for containers with a
    /// barrier in its own pods only, so that a stolen node cannot open the levels of others (docs/protocol.md).
    pub(super) fn accept_start(&mut self, node: &NodeName, started: Started) -> bool {
        let mut containers = self.pod.containers.iter();
        let counts = self.pod.pod.node.as_ref() == Some(node)
            && containers.any(|container| container.name == started.container);
        if counts {
            self.started.insert(started.container, started.container_id);
        }
        counts
    }

    /// Plans, notes the plan's stage, events and write, and returns when to plan again.
    pub(super) fn advance(
        &mut self,
        map: MapView<'_>,
        stuck_after: Duration,
        step: &mut Step,
    ) -> Option<Monotonic> {
        let snapshot = Snapshot {
            pod: &self.pod,
            map,
            started: &self.started,
            current: self.progress.current().and_then(|current| {
                let (level, since) = (current.level, *self.since.get(&current.level)?);
                Some(CurrentLevel { level, since })
            }),
            poll: self.poll,
            stuck_after,
        };
        let plan = plan(&snapshot, step.now);
        self.note_stage(plan.stage, step);
        if let Some(event) = plan.event {
            self.publish(event, step);
        }
        if let Some(write) = plan.write {
            self.request = Request::Writing; // Idle => Writing
            self.act(Action::Write(write), step);
        }
        plan.wake_at
    }

    /// The write succeeded.
    pub(super) fn note_success(&mut self) {
        self.request = Request::Idle; // Writing => Idle
        self.consecutive_conflicts = 0;
        self.retries = 0;
    }

    /// Fetches the ConfigMap, after so many conflicts, or because the watch does not show its changes.
    pub(super) fn fetch(&mut self, consecutive_conflicts: u32, step: &mut Step) {
        self.consecutive_conflicts = consecutive_conflicts;
        self.request = Request::Fetching; // Idle | Writing => Fetching
        self.act(Action::FetchMap, step);
    }

    /// Ends the request, and returns when to plan again.
    pub(super) fn retry_at(&mut self, now: Monotonic) -> Monotonic {
        self.request = Request::Idle; // Writing | Fetching => Idle
        let pause = API_WRITE.pause(self.retries);
        self.retries = self.retries.saturating_add(1);
        now + pause
    }

    /// The watch does not show the pod's ConfigMap; it was fetched.
    pub(super) fn note_poll(&mut self, is_unchanged: bool, at: Monotonic) {
        let before = self.poll.filter(|_| is_unchanged);
        let unchanged_polls = before.map_or(0, |poll| poll.unchanged_polls.saturating_add(1));
        self.poll = Some(MapPoll {
            at,
            unchanged_polls,
        });
    }

    /// Publishes the event unless one of its name was published.
    pub(super) fn publish(&mut self, event: LaunchEvent, step: &mut Step) {
        if self.published.insert(event.name.clone()) {
            self.act(Action::PublishEvent(event), step);
        }
    }

    /// The pod is gone, or another one has its name.
    pub(super) fn end(&self, step: &mut Step) {
        if self.progress.reported().is_some() {
            let is_launched = false;
            self.act(Action::LaunchEnded { is_launched }, step);
        }
    }

    /// Adds an effect for the pod.
    pub(super) fn act(&self, action: Action, step: &mut Step) {
        step.effects.push(Effect {
            pod: self.pod.pod.key.clone(),
            uid: self.pod.pod.uid.clone(),
            action,
        });
    }

    /// Notes the stage that a plan found, and reports the change.
    fn note_stage(&mut self, stage: Stage, step: &mut Step) {
        let now = step.now.monotonic;
        let before = self.progress.reported();
        self.progress = self.progress.after(&stage, &self.pod, now);
        self.report_since(before, step);
        self.waiting.clear();
        if let (Stage::Waiting { containers, .. }, Some(current)) = (stage, self.progress.current())
        {
            self.note_since(current.level, now);
            self.waiting = containers;
        }
    }

    /// Reports what ended and began since the level `before` was waited for.
    fn report_since(&self, before: Option<CurrentLevel>, step: &mut Step) {
        let current = self.progress.reported();
        if current == before {
            return;
        }
        let first = match before {
            Some(CurrentLevel { level, since }) => Action::LevelEnded {
                level,
                took: step.now.monotonic - since,
            },
            None => Action::LaunchBegun {
                traceparent: self.pod.trace_parent.clone(),
            },
        };
        self.act(first, step);
        let second = match current {
            Some(CurrentLevel { level, .. }) => {
                let of_level = self.pod.containers.iter().filter(|it| it.priority == level);
                let containers = of_level.map(|container| container.name.clone()).collect();
                Action::LevelBegun { level, containers }
            }
            None => Action::LaunchEnded {
                is_launched: self.progress == Progress::Launched,
            },
        };
        self.act(second, step);
    }

    /// The time before the kubelet can start the containers is not the level's.
    fn note_since(&mut self, level: Priority, now: Monotonic) {
        let was_seen = !self.pod.is_completed || !self.since.is_empty();
        if may_start(&self.pod.pod) && was_seen {
            self.since.entry(level).or_insert(now);
        }
    }
}

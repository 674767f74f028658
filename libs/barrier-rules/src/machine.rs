//! The machine: the memory of all pods and ConfigMaps, and what each event changes in it.
//!
//! Owns which pods an event concerns, at most one request per pod, and when pods are forgotten. One pod's memory is in
//! `machine/launch.rs`; what it needs next is decided by [`crate::plan`].

mod launch;
mod maps;
mod progress;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use model::{
    ids::{NodeName, PodKey, PodUid},
    launch::{BarrierMap, LaunchPod, Priority, Started},
    time::{Monotonic, Now},
    wakes::WakeSet,
    watch::Unlisted,
};

use self::{
    launch::{Launch, Request},
    maps::Maps,
};
use crate::{
    container::Waiting,
    effect::{Action, Effect},
    event::{Event, FetchResult, WriteResult},
    messages,
};

/// Decides what the leader does for all pods with launch barriers.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// A level that is not up for this long causes a warning.
    stuck_after: Duration,
    launches: BTreeMap<PodKey, Launch>,
    unlisted: Unlisted<PodKey>,
    maps: Maps,
    /// The pods whose launch waits for a level.
    launching: BTreeSet<PodKey>,
    /// When to plan again for which pod.
    wakes: WakeSet<PodKey>,
}

/// The machine's memory in numbers, and some of the pods that launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State<'a> {
    /// Pods with launch barriers.
    pub pods: usize,
    /// Pods that wait for a level.
    pub launching: usize,
    pub some_launching: Vec<LaunchState<'a>>,
}

/// One pod that launches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchState<'a> {
    pub pod: &'a PodKey,
    pub level: Option<Priority>,
    /// The containers that the level waits for.
    pub waiting_for: &'a [Waiting],
    /// True while a request for the pod is under way.
    pub is_writing: bool,
}

/// One event's moment, and the effects decided so far.
struct Step {
    now: Now,
    effects: Vec<Effect>,
}

// === impl Machine ===

impl Machine {
    /// Returns a machine that knows nothing: the first list of pods and that of ConfigMaps fill it.
    pub fn new(stuck_after: Duration) -> Self {
        Self {
            stuck_after,
            ..Self::default()
        }
    }

    /// Notes what happened, and returns what to do, in order.
    pub fn on_event(&mut self, event: Event, now: Now) -> Vec<Effect> {
        let effects = Vec::new();
        let mut step = Step { now, effects };
        match event {
            Event::PodListBegun => self.unlisted.begin(self.launches.keys().cloned().collect()),
            Event::PodSeen(pod) => self.on_pod(*pod, &mut step),
            Event::PodUnreadable(pod) => self.unlisted.saw(&pod),
            Event::PodGone { pod, uid } => {
                if self.launch_of(&pod, &uid).is_some() {
                    self.remove(&pod, &mut step);
                }
            }
            Event::PodListEnded => {
                for pod in self.unlisted.end() {
                    self.remove(&pod, &mut step);
                }
            }
            Event::MapListBegun => self.maps.begin_list(),
            Event::MapSeen { pod, map } => {
                self.maps.saw(&pod);
                self.store_map(&pod, map);
                self.advance(&pod, &mut step);
            }
            Event::MapUnreadable(pod) => self.maps.saw(&pod),
            Event::MapGone { pod, uid } => {
                self.maps.remove_uid(&pod, &uid);
                self.advance(&pod, &mut step);
            }
            Event::MapListEnded => {
                self.maps.end_list();
                for pod in self.launches.keys().cloned().collect::<Vec<_>>() {
                    self.advance(&pod, &mut step);
                }
            }
            Event::Written { pod, uid, result } => self.on_written(&pod, &uid, result, &mut step),
            Event::Fetched { pod, uid, result } => self.on_fetched(&pod, &uid, result, &mut step),
            Event::Started { node, started } => self.on_started(&node, started, &mut step),
            Event::Tick => self.on_tick(&mut step),
        }
        step.effects
    }

    /// When to send `Event::Tick`; `None` while only other events matter.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        self.wakes.next()
    }

    /// The machine's memory, with at most `shown` of the pods that launch.
    pub fn state(&self, shown: usize) -> State<'_> {
        let launching = self.launching.iter().take(shown);
        let launching = launching.filter_map(|pod| {
            let launch = self.launches.get(pod)?;
            Some(LaunchState {
                pod,
                level: launch.progress.current().map(|current| current.level),
                waiting_for: &launch.waiting,
                is_writing: launch.request != Request::Idle,
            })
        });
        State {
            pods: self.launches.len(),
            launching: self.launching.len(),
            some_launching: launching.collect(),
        }
    }

    fn on_pod(&mut self, pod: LaunchPod, step: &mut Step) {
        let key = pod.pod.key.clone();
        self.unlisted.saw(&key);
        match self.launch_of(&key, &pod.pod.uid) {
            Some(launch) => launch.update(pod),
            None => {
                self.remove(&key, step);
                self.launches.insert(key.clone(), Launch::new(pod));
            }
        }
        self.advance(&key, step);
    }

    fn on_written(&mut self, pod: &PodKey, uid: &PodUid, result: WriteResult, step: &mut Step) {
        let launch = self.launch_of(pod, uid);
        match (result, launch) {
            (WriteResult::PodWritten(object), Some(launch)) => launch.update(*object),
            (WriteResult::MapConflict, Some(launch)) => {
                return launch.fetch(launch.consecutive_conflicts.saturating_add(1), step);
            }
            (WriteResult::PodGone, Some(_)) => return self.remove(pod, step),
            (WriteResult::MapWritten(map), _) => self.store_map(pod, map),
            (WriteResult::MapDeleted, _) => self.maps.remove(pod),
            (WriteResult::PodBusy, _) => return self.retry_later(pod, uid, None, step),
            (WriteResult::Failed(why), _) => return self.retry_later(pod, uid, why, step),
            (WriteResult::PodWritten(_), None) => {}
            (WriteResult::MapConflict | WriteResult::PodGone, None) => return,
        }
        if let Some(launch) = self.launch_of(pod, uid) {
            launch.note_success();
        }
        // If a pod of another uid has the name by now, its ConfigMap may have changed.
        self.advance(pod, step);
    }

    fn on_fetched(&mut self, pod: &PodKey, uid: &PodUid, result: FetchResult, step: &mut Step) {
        match result {
            FetchResult::Found(map) => self.store_fetched(pod, map, step.now),
            FetchResult::Absent => self.maps.remove(pod),
            FetchResult::Failed(why) => return self.retry_later(pod, uid, why, step),
        }
        if let Some(launch) = self.launch_of(pod, uid) {
            launch.request = Request::Idle; // Fetching => Idle
            if launch.consecutive_conflicts > 1 {
                // Another writer changes the same ConfigMap.
                return self.retry_later(pod, uid, None, step);
            }
        }
        // If a pod of another uid has the name by now, its ConfigMap may have changed.
        self.advance(pod, step);
    }

    /// Only a pod's own node reports for it; a report may come before the pod is known, and is lost then.
    fn on_started(&mut self, node: &NodeName, started: Started, step: &mut Step) {
        let pod = started.pod.clone();
        if let Some(launch) = self.launch_of(&pod, &started.pod_uid)
            && launch.accept_start(node, started)
        {
            launch.act(Action::StartAccepted, step);
            self.advance(&pod, step);
        }
    }

    fn on_tick(&mut self, step: &mut Step) {
        for pod in self.wakes.take_due(step.now.monotonic) {
            match self.launches.get_mut(&pod) {
                Some(launch) if self.maps.is_unwatched(&pod) && launch.request == Request::Idle => {
                    launch.fetch(0, step);
                }
                Some(_) | None => self.advance(&pod, step),
            }
        }
    }

    fn store_map(&mut self, pod: &PodKey, map: BarrierMap) {
        if map.is_labelled
            && let Some(launch) = self.launches.get_mut(pod)
        {
            launch.poll = None;
        }
        self.maps.store(pod, map);
    }

    fn store_fetched(&mut self, pod: &PodKey, map: BarrierMap, now: Now) {
        let is_unchanged = self.maps.is_known_unwatched(pod, &map.uid);
        if !map.is_labelled
            && let Some(launch) = self.launches.get_mut(pod)
        {
            launch.note_poll(is_unchanged, now.monotonic);
        }
        self.store_map(pod, map);
    }

    /// Ends the request without a new plan, until the pause is over or another event concerns the pod. `refusal` is the
    /// API server's reason for rejecting it.
    fn retry_later(
        &mut self,
        pod: &PodKey,
        uid: &PodUid,
        refusal: Option<String>,
        step: &mut Step,
    ) {
        if let Some(launch) = self.launch_of(pod, uid) {
            if let Some(why) = refusal {
                launch.publish(messages::refused(&launch.pod, &why), step);
            }
            let at = launch.retry_at(step.now.monotonic);
            self.wakes.set(pod, Some(at));
        }
    }

    /// Plans what the pod needs now, unless a request for it is under way.
    fn advance(&mut self, pod: &PodKey, step: &mut Step) {
        let launch = self.launches.get_mut(pod);
        let Some(launch) = launch.filter(|launch| launch.request == Request::Idle) else {
            return;
        };
        let wake_at = launch.advance(self.maps.view(pod), self.stuck_after, step);
        self.wakes.set(pod, wake_at);
        if launch.progress.current().is_some() {
            self.launching.insert(pod.clone());
        } else {
            self.launching.remove(pod);
        }
    }

    fn remove(&mut self, pod: &PodKey, step: &mut Step) {
        if let Some(launch) = self.launches.remove(pod) {
            launch.end(step);
        }
        self.launching.remove(pod);
        self.wakes.set(pod, None);
        self.maps.remove_unwatched(pod);
    }

    /// The pod of that uid, unless another one has its name by now.
    fn launch_of(&mut self, pod: &PodKey, uid: &PodUid) -> Option<&mut Launch> {
        let launch = self.launches.get_mut(pod)?;
        (launch.pod.pod.uid == *uid).then_some(launch)
    }
}

#[cfg(test)]
mod tests;

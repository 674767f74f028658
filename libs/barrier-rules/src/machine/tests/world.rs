//! A small cluster around the machine: an API server with watches that lag, a kubelet, and leaders that change.
//!
//! Owns the objects, and everything that was sent and has not arrived. It checks what has to hold at every step.

use std::collections::VecDeque;

use model::{ids::ContainerName, pod::Pod};

use super::*;

/// One step of the cluster.
#[derive(Clone, Copy, Debug)]
pub(super) enum Move {
    /// The API server handles the next request.
    Execute(Fault),
    /// The oldest answer arrives.
    Answer,
    /// The next event of the watch of pods arrives.
    DeliverPod,
    /// The next event of the watch of ConfigMaps arrives.
    DeliverMap,
    /// The kubelet syncs a container: it starts if its key is there.
    Sync {
        index: usize,
        is_ready: bool,
        report: Report,
    },
    /// The watch of pods starts over with a list.
    RelistPods,
    /// The watch of ConfigMaps starts over with a list.
    RelistMaps,
    /// The machine's next deadline comes.
    Tick,
    /// Another leader takes over: answers under way are lost, requests under way are not.
    NewLeader,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// It is carried out, and its answer is a failure.
    LostAnswer,
    /// It is not carried out.
    Failure,
    /// It is rejected because of another writer.
    Conflict,
}

/// What happens to a node's report of a started container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    Lost,
    Delivered,
}

pub(super) struct World {
    machine: Machine,
    now: u64,
    version: u64,
    leader: u32,
    pub(super) pod: LaunchPod,
    map: Option<BarrierMap>,
    had_leftover: bool,
    pod_watch: VecDeque<Event>,
    map_watch: VecDeque<Event>,
    /// Writes, and fetches as `None`, with the leader that sent each.
    requests: VecDeque<(u32, Option<Write>)>,
    answers: VecDeque<Event>,
    is_waiting_for_answer: bool,
    /// The level that is reported as begun.
    reported: Option<Priority>,
    /// Containers whose level below need not wait for them any more.
    were_up: BTreeSet<ContainerName>,
    pub(super) map_writes: usize,
    pub(super) pod_writes: usize,
    /// True while nothing happened that may cost additional writes.
    pub(super) is_undisturbed: bool,
}

// === impl World ===

impl World {
    /// `leftover`: the ConfigMap of an earlier pod, without keys.
    pub(super) fn new(pod: LaunchPod, leftover: Option<BarrierMap>) -> Self {
        let mut world = Self {
            machine: Machine::new(STUCK_AFTER),
            now: 0,
            version: 10,
            leader: 0,
            pod,
            had_leftover: leftover.is_some(),
            map: leftover,
            pod_watch: VecDeque::new(),
            map_watch: VecDeque::new(),
            requests: VecDeque::new(),
            answers: VecDeque::new(),
            is_waiting_for_answer: false,
            reported: None,
            were_up: BTreeSet::new(),
            map_writes: 0,
            pod_writes: 0,
            is_undisturbed: true,
        };
        world.relist_pods();
        world.relist_maps();
        world
    }

    pub(super) fn state(&self) -> State<'_> {
        self.machine.state(1)
    }

    pub(super) fn step(&mut self, step: Move) {
        match step {
            Move::Execute(fault) => self.execute(fault),
            Move::Answer => {
                if let Some(answer) = self.answers.pop_front() {
                    self.is_waiting_for_answer = false;
                    self.tell(answer);
                }
            }
            Move::DeliverPod => {
                if let Some(event) = self.pod_watch.pop_front() {
                    self.tell(event);
                }
            }
            Move::DeliverMap => {
                if let Some(event) = self.map_watch.pop_front() {
                    self.tell(event);
                }
            }
            Move::Sync {
                index,
                is_ready,
                report,
            } => self.sync(index, is_ready, report),
            Move::RelistPods => self.relist_pods(),
            Move::RelistMaps => {
                // A list that began before the leftover's deletion was known, and shows neither it nor our own
                // ConfigMap, costs one more creation.
                self.is_undisturbed &= !self.had_leftover;
                self.relist_maps();
            }
            Move::Tick => {
                if let Some(at) = self.machine.next_deadline() {
                    let at = u64::try_from(at.since_origin().as_millis()).unwrap();
                    self.now = self.now.max(at);
                    self.tell(Event::Tick);
                }
            }
            Move::NewLeader => self.change_leader(),
        }
    }

    /// Without faults, until nothing is under way and every container that may start is up.
    pub(super) fn settle(&mut self) {
        for _ in 0..40 {
            while !(self.requests.is_empty()
                && self.answers.is_empty()
                && self.pod_watch.is_empty()
                && self.map_watch.is_empty())
            {
                self.step(Move::Execute(Fault::None));
                self.step(Move::Answer);
                self.step(Move::DeliverPod);
                self.step(Move::DeliverMap);
            }
            for index in 0..self.pod.containers.len() {
                self.sync(index, true, Report::Lost);
            }
            self.step(Move::Tick);
        }
    }

    fn tell(&mut self, event: Event) {
        for effect in self.machine.on_event(event, at(self.now)) {
            match effect.action {
                Action::Write(write) => self.send(Some(write)),
                Action::FetchMap => self.send(None),
                Action::LevelBegun { level, .. } => {
                    assert_eq!(self.reported.replace(level), None);
                }
                Action::LevelEnded { level, .. } => assert_eq!(self.reported.take(), Some(level)),
                Action::LaunchBegun { .. } | Action::LaunchEnded { .. } => {
                    assert_eq!(self.reported, None);
                }
                Action::PublishEvent(_) | Action::StartAccepted => {}
            }
        }
    }

    fn send(&mut self, request: Option<Write>) {
        assert!(!self.is_waiting_for_answer, "two requests: {request:?}");
        self.is_waiting_for_answer = true;
        self.requests.push_back((self.leader, request));
    }

    fn change_leader(&mut self) {
        self.is_undisturbed &= self.requests.is_empty() && self.answers.is_empty();
        self.leader += 1;
        self.machine = Machine::new(STUCK_AFTER);
        self.answers.clear();
        self.is_waiting_for_answer = false;
        self.reported = None;
        self.relist_pods();
        self.relist_maps();
    }

    fn relist_pods(&mut self) {
        self.tell(Event::PodListBegun);
        self.pod_watch.clear();
        self.show_pod();
        self.pod_watch.push_back(Event::PodListEnded);
    }

    fn relist_maps(&mut self) {
        self.tell(Event::MapListBegun);
        self.map_watch.clear();
        self.show_map();
        self.map_watch.push_back(Event::MapListEnded);
    }

    fn show_pod(&mut self) {
        let pod = Box::new(self.pod.clone());
        self.pod_watch.push_back(Event::PodSeen(pod));
    }

    fn show_map(&mut self) {
        if let Some(map) = self.map.clone() {
            self.map_watch.push_back(map_seen(map));
        }
    }

    fn change_pod(&mut self, change: impl FnOnce(&mut LaunchPod)) {
        change(&mut self.pod);
        self.version += 1;
        self.pod.pod.version = self.version.to_string();
        self.show_pod();
    }

    /// The answer reaches only the leader that sent the request.
    fn execute(&mut self, fault: Fault) {
        let Some((leader, request)) = self.requests.pop_front() else {
            return;
        };
        self.is_undisturbed &= fault == Fault::None;
        let answer = match request {
            Some(write) => written(self.execute_write(write, fault)),
            None => fetched(match (fault, &self.map) {
                (Fault::None | Fault::Conflict, Some(map)) => FetchResult::Found(map.clone()),
                (Fault::None | Fault::Conflict, None) => FetchResult::Absent,
                (Fault::LostAnswer | Fault::Failure, _) => FetchResult::Failed(None),
            }),
        };
        if leader == self.leader {
            self.answers.push_back(answer);
        }
    }

    fn execute_write(&mut self, write: Write, fault: Fault) -> WriteResult {
        let is_nudge = matches!(write, Write::Nudge { .. });
        let counter = if is_nudge {
            &mut self.pod_writes
        } else {
            &mut self.map_writes
        };
        *counter += 1;
        match fault {
            Fault::None => self.apply(write),
            Fault::LostAnswer => {
                self.apply(write);
                WriteResult::Failed(None)
            }
            Fault::Failure => WriteResult::Failed(None),
            Fault::Conflict if is_nudge => WriteResult::PodBusy,
            Fault::Conflict => WriteResult::MapConflict,
        }
    }

    fn apply(&mut self, write: Write) -> WriteResult {
        self.version += 1;
        let version = self.version.to_string();
        let known = self.map.as_ref().map(|map| map.uid.clone());
        match write {
            Write::CreateMap { .. } if self.map.is_some() => return WriteResult::MapConflict,
            Write::CreateMap { keys } => {
                self.map = Some(BarrierMap {
                    uid: format!("map-{version}"),
                    version,
                    keys,
                    ..barrier_map(&[])
                });
            }
            Write::DeleteMap { uid } | Write::EmptyMap { uid } | Write::AddKeys { uid, .. }
                if known.as_ref() != Some(&uid) =>
            {
                return match known {
                    Some(_) => WriteResult::MapConflict,
                    None => WriteResult::MapConflict,
                };
            }
            Write::DeleteMap { uid } => {
                self.map = None;
                self.map_watch.push_back(Event::MapGone { pod: web(), uid });
                return WriteResult::MapDeleted;
            }
            Write::EmptyMap { .. } => panic!("no finalizer keeps a ConfigMap here"),
            Write::AddKeys { keys, .. } => {
                let map = self.map.as_mut().unwrap();
                map.keys.extend(keys);
                map.version = version;
            }
            Write::Nudge { level, completes } => {
                self.change_pod(|pod| {
                    pod.told = Some(level);
                    pod.is_completed |= completes;
                });
                return WriteResult::PodWritten(Box::new(self.pod.clone()));
            }
        }
        self.show_map();
        WriteResult::MapWritten(self.map.clone().unwrap())
    }

    fn sync(&mut self, index: usize, is_ready: bool, report: Report) {
        let Some(container) = self.pod.containers.get(index).cloned() else {
            return;
        };
        let map = self.map.as_ref();
        let is_open = map.is_some_and(|map| map.keys.contains(&container.priority));
        let known = self.pod.pod.container(&container.name);
        let has_begun = known.is_some_and(|status| status.container_id.is_some());
        if known.is_some_and(|status| status.is_ready) || !(is_open || has_begun) {
            return;
        }
        if !has_begun {
            for above in &self.pod.containers {
                assert!(
                    above.priority <= container.priority || self.were_up.contains(&above.name),
                    "{} starts before {}",
                    container.name,
                    above.name
                );
            }
        }
        if is_ready || report == Report::Delivered {
            self.were_up.insert(container.name.clone());
        }
        let mut status = testkit::container(container.name.as_str());
        status.is_ready = is_ready;
        self.change_pod(|pod| replace_status(&mut pod.pod, status));
        if report == Report::Delivered {
            self.tell(Event::Started {
                node: "node-1".into(),
                started: Started {
                    pod: web(),
                    pod_uid: self.pod.pod.uid.clone(),
                    container_id: format!("{}-0", container.name).as_str().into(),
                    container: container.name,
                },
            });
        }
    }
}

fn replace_status(pod: &mut Pod, status: model::pod::ContainerStatus) {
    pod.containers.retain(|known| known.name != status.name);
    pod.containers.push(status);
}

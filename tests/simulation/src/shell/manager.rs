//! The barrier-manager around `barrier_rules::Machine`.

use std::collections::BTreeSet;

use barrier_rules::{Action, Effect, Event, FetchResult, Machine, Write, WriteResult};
use model::{
    ids::{PodKey, PodUid},
    launch::{BarrierMap, Priority},
    pod::ContainerState,
    time::{Monotonic, Now},
};

use super::kinds;
use crate::{
    Process, World,
    api_server::{Object, Precondition, Refused},
    brief,
    fault::Fault,
    plant::Plant,
    world::{Host, Selector, Shell, Shown},
};

/// The process.
pub(crate) struct Manager {
    pub(crate) host: Host<Machine>,
}

kinds! { EFFECTS, name_of, Action:
    Action::Write { .. } => "Write",
    Action::FetchMap => "FetchMap",
    Action::PublishEvent { .. } => "PublishEvent",
    Action::StartAccepted => "StartAccepted",
    Action::LaunchBegun { .. } => "LaunchBegun",
    Action::LevelBegun { .. } => "LevelBegun",
    Action::LevelEnded { .. } => "LevelEnded",
    Action::LaunchEnded { .. } => "LaunchEnded",
}

kinds! { WRITES, name_of_write, Write:
    Write::CreateMap { .. } => "CreateMap",
    Write::DeleteMap { .. } => "DeleteMap",
    Write::EmptyMap { .. } => "EmptyMap",
    Write::AddKeys { .. } => "AddKeys",
    Write::Nudge { .. } => "Nudge",
}

// === impl Manager ===

impl Manager {
    pub(crate) fn new(origin: u64) -> Self {
        Self {
            host: Host::new(origin),
        }
    }
}

impl Shell for Manager {
    type Machine = Machine;
    type Event = Event;
    type Effect = Effect;
    const PROCESS: Process = Process::Manager;
    const CRASH: Fault = Fault::ManagerCrash;

    fn of(world: &mut World, _: usize) -> &mut Self {
        &mut world.manager
    }

    fn host(&mut self) -> &mut Host<Machine> {
        &mut self.host
    }

    fn start(&mut self) -> Option<Event> {
        self.host.machine = Some(Machine::new(std::time::Duration::from_secs(30)));
        None
    }

    fn tick() -> Event {
        Event::Tick
    }

    fn step(machine: &mut Machine, event: Event, now: Now) -> Vec<Effect> {
        machine.on_event(event, now)
    }

    fn next_deadline(machine: &Machine, _: Now) -> Option<Monotonic> {
        machine.next_deadline()
    }

    fn brief_event(event: &Event) -> String {
        match event {
            Event::PodSeen(pod) => format!("PodSeen {}", brief::pod(&pod.pod)),
            Event::Written {
                result: WriteResult::PodWritten(pod),
                ..
            } => format!("Written {}", brief::pod(&pod.pod)),
            other => format!("{other:?}"),
        }
    }

    fn on_started(world: &mut World, index: usize) {
        let life = world.life::<Self>(index);
        for selector in [Selector::LaunchPods, Selector::Maps] {
            world.open_watch((Process::Manager, index, life), selector, on_shown);
        }
    }

    fn on_crashed(world: &mut World, index: usize) {
        let wait = world.between(100, 10_000);
        world.after(wait, move |world| world.start::<Self>(index));
    }

    fn carry_out(world: &mut World, index: usize, effect: Effect) {
        let Effect { pod, uid, action } = effect;
        world.coverage.count("barrier effect", name_of(&action));
        let life = world.life::<Self>(index);
        match action {
            Action::Write(write) => {
                world.coverage.count("barrier write", name_of_write(&write));
                let (key, of) = (pod.clone(), uid.clone());
                world.write(
                    move |world| perform(world, &key, &of, write),
                    move |world, result| {
                        let result = result.unwrap_or(WriteResult::Failed(None));
                        let event = Event::Written { pod, uid, result };
                        world.deliver::<Self>(index, life, event);
                    },
                );
            }
            Action::FetchMap => {
                let key = pod.clone();
                world.write(
                    move |world| world.api.maps.get(&key).cloned(),
                    move |world, fetched| {
                        let result = match fetched {
                            None => FetchResult::Failed(None),
                            Some(None) => FetchResult::Absent,
                            Some(Some(map)) => FetchResult::Found(map),
                        };
                        let event = Event::Fetched { pod, uid, result };
                        world.deliver::<Self>(index, life, event);
                    },
                );
            }
            Action::PublishEvent { .. }
            | Action::StartAccepted
            | Action::LaunchBegun { .. }
            | Action::LevelBegun { .. }
            | Action::LevelEnded { .. }
            | Action::LaunchEnded { .. } => {}
        }
    }
}

/// What a watch shows, as an event of the machine.
fn on_shown(world: &mut World, index: usize, life: u32, shown: Shown, selector: &Selector) {
    let is_pods = *selector == Selector::LaunchPods;
    let event = match shown {
        Shown::ListBegun if is_pods => Event::PodListBegun,
        Shown::ListBegun => Event::MapListBegun,
        Shown::ListEnded if is_pods => Event::PodListEnded,
        Shown::ListEnded => Event::MapListEnded,
        Shown::Object(Object::Pod(mut object)) => {
            if world.is_planted(Plant::RunningReadAsReady) {
                for status in &mut object.pod.containers {
                    status.is_ready = matches!(status.state, ContainerState::Running { .. });
                }
            }
            Event::PodSeen(object)
        }
        Shown::Gone(Object::Pod(object)) => Event::PodGone {
            pod: object.pod.key,
            uid: object.pod.uid,
        },
        Shown::Object(Object::Map(pod, mut map)) => {
            let owner = world.api.pods.get(&pod).map(|pod| pod.pod.uid.clone());
            if world.is_planted(Plant::MapOwnerByName) {
                map.owners = owner.into_iter().collect();
            }
            Event::MapSeen { pod, map }
        }
        Shown::Gone(Object::Map(pod, map)) => Event::MapGone { pod, uid: map.uid },
        Shown::Object(Object::Crr(_)) | Shown::Gone(Object::Crr(_)) => return,
    };
    world.deliver::<Manager>(index, life, event);
}

/// The write as the API server does it.
fn perform(world: &mut World, pod: &PodKey, uid: &PodUid, write: Write) -> WriteResult {
    let result = match write {
        Write::CreateMap { keys } => return create_map(world, pod, uid, &keys),
        Write::DeleteMap { uid } => {
            let precondition = Precondition::uid(&uid);
            let deleted = world.api.change_map(pod, &precondition, |map| {
                map.is_being_deleted = true;
            });
            deleted.map(|_| WriteResult::MapDeleted)
        }
        Write::EmptyMap { uid } => {
            let precondition = Precondition::uid(&uid);
            let emptied = world
                .api
                .change_map(pod, &precondition, |map| map.keys.clear());
            emptied.map(WriteResult::MapWritten)
        }
        Write::AddKeys { keys, uid: map_uid } => {
            let precondition = Precondition::uid(&map_uid);
            let added = world.api.change_map(pod, &precondition, |map| {
                map.keys.extend(&keys);
                map.is_labelled = true;
            });
            if let Ok(map) = &added {
                let map = map.clone();
                world.check_keys(pod, uid, &keys, &map);
            }
            added.map(WriteResult::MapWritten)
        }
        Write::Nudge { level, completes } => {
            let precondition = Precondition::uid(uid.as_str());
            let nudged = world.api.change_pod(pod, &precondition, |pod| {
                pod.told = Some(level);
                pod.is_completed |= completes;
            });
            world.nudge_kubelet(uid);
            return match nudged {
                Ok(pod) => WriteResult::PodWritten(Box::new(pod)),
                Err(Refused::NotFound) => WriteResult::PodGone,
                Err(Refused::Conflict) => WriteResult::PodBusy,
            };
        }
    };
    result.unwrap_or(WriteResult::MapConflict)
}

fn create_map(
    world: &mut World,
    pod: &PodKey,
    uid: &PodUid,
    keys: &BTreeSet<Priority>,
) -> WriteResult {
    if world.api.maps.contains_key(pod) {
        return WriteResult::MapConflict;
    }
    let map = BarrierMap {
        uid: format!("map-{}", world.next_number()),
        version: String::new(),
        owners: vec![uid.clone()],
        is_labelled: true,
        is_being_deleted: false,
        keys: keys.clone(),
    };
    let map = world.api.put_map(pod, map);
    world.check_keys(pod, uid, keys, &map);
    WriteResult::MapWritten(map)
}

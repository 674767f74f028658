//! A replica of the crr-scheduler around `crr_rules::Machine`.

use std::collections::{BTreeMap, BTreeSet};

use crr_rules::{Effect, Event, GateWrite, Machine, PodView, Write, WriteResult};
use model::{
    crr::Crr,
    ids::PodKey,
    labels,
    order_id::OrderId,
    time::{Monotonic, Now},
};

use super::{executor::node_number, kinds};
use crate::{
    Process, World,
    api_server::{Object, Precondition, Refused},
    brief,
    fault::Fault,
    plant::Plant,
    world::{Host, Selector, Shell, Shown},
};

/// The process, and the requests that it waits for.
pub(crate) struct Scheduler {
    pub(crate) host: Host<Machine>,
    /// Sendings of orders without an answer yet.
    pub(crate) asked: BTreeSet<u64>,
    /// Who waits for the acknowledgement of a report: node, its life, order and sequence.
    pub(crate) reports: BTreeMap<u64, (usize, u32, OrderId, u32)>,
    /// Pods that the list under way has shown.
    listed: BTreeSet<PodKey>,
}

kinds! { EFFECTS, name_of, Effect:
    Effect::Write { .. } => "Write",
    Effect::Send { .. } => "Send",
    Effect::Nudge { .. } => "Nudge",
    Effect::Publish { .. } => "Publish",
    Effect::WatchPod(_) => "WatchPod",
    Effect::UnwatchPod(_) => "UnwatchPod",
    Effect::Acknowledge(_) => "Acknowledge",
    Effect::Ignore(_) => "Ignore",
    Effect::AnswerPresence { .. } => "AnswerPresence",
    Effect::Began(_) => "Began",
    Effect::Ended { .. } => "Ended",
}

kinds! { WRITES, name_of_write, Write:
    Write::Status(_) => "Status",
    Write::AddFinalizer => "AddFinalizer",
    Write::Gate(_) => "Gate",
    Write::Close => "Close",
    Write::Delete => "Delete",
}

// === impl Scheduler ===

impl Scheduler {
    pub(crate) fn new(origin: u64) -> Self {
        Self {
            host: Host::new(origin),
            asked: BTreeSet::new(),
            reports: BTreeMap::new(),
            listed: BTreeSet::new(),
        }
    }
}

impl Shell for Scheduler {
    type Machine = Machine;
    type Event = Event;
    type Effect = Effect;
    const PROCESS: Process = Process::Scheduler;
    const CRASH: Fault = Fault::SchedulerCrash;

    fn of(world: &mut World, index: usize) -> &mut Self {
        &mut world.schedulers[index]
    }

    fn host(&mut self) -> &mut Host<Machine> {
        &mut self.host
    }

    fn start(&mut self) -> Option<Event> {
        self.host.machine = Some(Machine::new());
        self.asked.clear();
        self.reports.clear();
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
            Event::CrrSeen(crr) => format!("CrrSeen {}", brief::crr(crr)),
            Event::PodSeen { view, .. } => format!("PodSeen {}", brief_view(view)),
            Event::Written { uid, result, .. } => match result {
                WriteResult::Crr(Some(crr)) => format!("Written {}", brief::crr(crr)),
                WriteResult::Gate(Some(view)) => format!("Written {}", brief_view(view)),
                other => format!("Written {uid} {other:?}"),
            },
            other => format!("{other:?}"),
        }
    }

    fn brief_effect(effect: &Effect) -> String {
        match effect {
            Effect::Write { crr, write } => {
                let write = match &**write {
                    Write::Status(status) => {
                        let states = status.containers.iter().map(|it| (&it.name, it.phase));
                        let states: Vec<_> = states.collect();
                        format!("Status {:?} {:?} {states:?}", status.phase, status.message)
                    }
                    other => format!("{other:?}"),
                };
                format!("Write {}: {write}", brief::crr(crr))
            }
            Effect::Publish { crr, event } => format!("Publish {} {}", crr.uid, event.reason),
            Effect::Began(crr) | Effect::Ended { crr, .. } => {
                format!("{} {}", name_of(effect), brief::crr(crr))
            }
            other => format!("{other:?}"),
        }
    }

    fn on_started(world: &mut World, index: usize) {
        let life = world.life::<Self>(index);
        world.open_watch((Process::Scheduler, index, life), Selector::Crrs, on_shown);
    }

    /// One of the replicas leads again after some seconds.
    fn on_crashed(world: &mut World, index: usize) {
        let wait = world.between(100, 15_000);
        let next = if world.is_likely(0.5) {
            index
        } else {
            1 - index
        };
        world.after(wait, move |world| world.lead_if_none_does(next));
    }

    fn carry_out(world: &mut World, index: usize, effect: Effect) {
        world.coverage.count("crr effect", name_of(&effect));
        let life = world.life::<Self>(index);
        match effect {
            Effect::Write { crr, write } => write_to_api(world, index, *crr, *write),
            Effect::Send { node, sending, .. } => {
                world.ledger.on_sent(&sending.order.id);
                world.check_send(&sending.order.id);
                world.send_order(index, node_number(&node), *sending);
            }
            Effect::Nudge {
                crr,
                uid,
                pod,
                pod_uid,
            } => {
                let write = move |world: &mut World| {
                    let precondition = Precondition::uid(pod_uid.as_str());
                    let done = world.api.change_pod(&pod, &precondition, |_| {}).is_ok();
                    if done {
                        world.nudge_kubelet(&pod_uid);
                    }
                    done
                };
                world.write(write, move |world, done| {
                    let is_done = done == Some(true);
                    let event = Event::Nudged { crr, uid, is_done };
                    world.deliver::<Self>(index, life, event);
                });
            }
            Effect::WatchPod(pod) => {
                let process = (Process::Scheduler, index, life);
                world.open_watch(process, Selector::Pod(pod), on_shown);
            }
            Effect::UnwatchPod(pod) => {
                world.close_watch(Process::Scheduler, index, &Selector::Pod(pod));
            }
            Effect::Acknowledge(reply) => world.acknowledge(index, reply.0),
            Effect::Ignore(reply) => {
                world.schedulers[index].reports.remove(&reply.0);
            }
            Effect::Publish { .. }
            | Effect::AnswerPresence { .. }
            | Effect::Began(_)
            | Effect::Ended { .. } => {}
        }
    }
}

fn brief_view(view: &PodView) -> String {
    match view {
        PodView::Present(pod) => brief::pod(pod),
        PodView::Unknown | PodView::Gone => format!("{view:?}"),
    }
}

/// What a watch shows, as an event of the machine.
fn on_shown(world: &mut World, index: usize, life: u32, shown: Shown, selector: &Selector) {
    let pod = match selector {
        Selector::Pod(pod) => Some(pod.clone()),
        Selector::Crrs | Selector::LaunchPods | Selector::Maps => None,
    };
    let event = match (shown, pod) {
        (Shown::ListBegun, None) => Event::CrrListBegun,
        (Shown::ListEnded, None) => Event::CrrListEnded,
        (Shown::Object(Object::Crr(crr)), _) => Event::CrrSeen(crr),
        (Shown::Gone(Object::Crr(crr)), _) => {
            if world.is_planted(Plant::DeletionsDropped) {
                return;
            }
            Event::CrrGone(crr.key)
        }
        (Shown::Object(Object::Pod(object)), Some(pod)) => {
            world.schedulers[index].listed.insert(pod.clone());
            let view = PodView::Present(Box::new(object.pod));
            Event::PodSeen { pod, view }
        }
        (Shown::ListBegun, Some(pod)) => {
            world.schedulers[index].listed.remove(&pod);
            return;
        }
        (Shown::ListEnded, Some(pod)) if world.schedulers[index].listed.contains(&pod) => return,
        (Shown::ListEnded | Shown::Gone(_), Some(pod)) => {
            let view = PodView::Gone;
            Event::PodSeen { pod, view }
        }
        (Shown::Object(_) | Shown::Gone(_), _) => return,
    };
    world.deliver::<Scheduler>(index, life, event);
}

/// Begins a write; its answer is an event.
fn write_to_api(world: &mut World, index: usize, crr: Crr, write: Write) {
    world.coverage.count("crr write", name_of_write(&write));
    let life = world.life::<Scheduler>(index);
    let (key, uid) = (crr.key.clone(), crr.uid.clone());
    let planted_success = world.is_planted(Plant::FailedWriteTakenAsDone);
    let mut wanted = crr.clone();
    if let Write::Status(status) = &write {
        wanted.status = status.clone();
    }
    world.write(
        move |world| perform(world, &crr, write),
        move |world, result| {
            let is_unreadable =
                world.options.has(Fault::AnswerUnreadable) && world.fault(Fault::AnswerUnreadable);
            let result = match result {
                None if planted_success => WriteResult::Crr(Some(Box::new(wanted))),
                None => WriteResult::Failed,
                Some(Ok(WriteResult::Crr(_))) if is_unreadable => WriteResult::Crr(None),
                Some(Ok(result)) => result,
                Some(Err(Refused::Conflict)) => WriteResult::Conflict,
                Some(Err(Refused::NotFound)) => WriteResult::Gone,
            };
            let crr = key;
            let event = Event::Written { crr, uid, result };
            world.deliver::<Scheduler>(index, life, event);
        },
    );
}

/// The write as the API server does it.
fn perform(world: &mut World, crr: &Crr, write: Write) -> Result<WriteResult, Refused> {
    let version = Precondition::version(&crr.version);
    let mut uid = Precondition::uid(crr.uid.as_str());
    if world.is_planted(Plant::UidNotSent) {
        uid = Precondition::default();
    }
    let written = match write {
        Write::Status(status) => {
            let drops_finalizer = world.is_planted(Plant::FinalizerDropped);
            let before = world.api.crrs.get(&crr.key).cloned();
            let after = world.api.change_crr(&crr.key, &version, |crr| {
                crr.status = status;
                if drops_finalizer {
                    crr.finalizers.clear();
                }
            })?;
            if let Some(before) = before {
                world.check_status(&before, &after);
            }
            after
        }
        Write::AddFinalizer => world.api.change_crr(&crr.key, &version, |crr| {
            crr.finalizers.push(labels::UNREADY_ACQUIRED.to_owned());
        })?,
        Write::Gate(gate) => return write_gate(world, crr, gate),
        Write::Close => {
            let precondition = if crr.has_finalizer() {
                Precondition {
                    version: version.version,
                    ..uid
                }
            } else {
                uid
            };
            let closed = world.api.change_crr(&crr.key, &precondition, |crr| {
                crr.is_labelled_active = false;
                crr.finalizers
                    .retain(|finalizer| finalizer != labels::UNREADY_ACQUIRED);
            })?;
            world.check_close(&closed, false);
            closed
        }
        Write::Delete => {
            let deleted = world.api.delete_crr(&crr.key, &uid)?;
            world.check_close(&deleted, true);
            return Ok(WriteResult::Deleted);
        }
    };
    Ok(WriteResult::Crr(Some(Box::new(written))))
}

fn write_gate(world: &mut World, crr: &Crr, gate: GateWrite) -> Result<WriteResult, Refused> {
    let version = (!world.is_planted(Plant::GateVersionNotSent)).then_some(gate.pod_version);
    let precondition = Precondition {
        uid: crr.pod_uid.as_ref().map(ToString::to_string),
        version,
    };
    let is_held = gate.message.contains(&crr.key.to_string());
    let written = world.api.change_pod(&crr.pod, &precondition, |pod| {
        if let Some(known) = &mut pod.pod.gate {
            known.is_open = Some(gate.is_open);
            known.message = gate.message;
        }
    })?;
    world.check_gate(crr, is_held);
    let view = PodView::Present(Box::new(written.pod));
    Ok(WriteResult::Gate(Some(view)))
}

//! A node-executor around `node_rules::Machine`.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    ids::{ContainerId, NodeName},
    order::Answer,
    order_id::OrderId,
    time::{Monotonic, Now},
};
use node_rules::{
    Action, Event, HookResult, ListedInstance, Machine, Observed, Record, ReplyToken, Settings,
    Stage, StopResult,
};

use super::kinds;
use crate::{
    Process, World,
    fault::Fault,
    plant::Plant,
    world::{Host, Shell, ms},
};

/// How long a finished order is remembered here.
const RETENTION: std::time::Duration = ms(1_800_000);

/// The process, its disk, and the node's faults.
pub(crate) struct Executor {
    pub(crate) host: Host<Machine>,
    slots: usize,
    /// Survives every crash.
    pub(crate) journal: BTreeMap<OrderId, Record>,
    /// Who waits for an answer: scheduler, its life and its request.
    pub(crate) requesters: BTreeMap<ReplyToken, ((usize, u32, u64), OrderId)>,
    /// Reports without an acknowledgement.
    pub(crate) reporting: BTreeSet<u64>,
    /// Cut off from the bus.
    pub(crate) is_away: bool,
    pub(crate) is_runtime_away: bool,
}

/// One of the machine's effects, in the order in which they are carried out.
#[derive(Debug)]
pub(crate) enum Effect {
    Store(Record),
    Forget(OrderId),
    Answer(ReplyToken, Answer),
    Act(Action),
}

kinds! { EFFECTS, name_of, Effect:
    Effect::Store(_) => "Store",
    Effect::Forget(_) => "Forget",
    Effect::Answer(_, Answer::Accepted) => "Answer Accepted",
    Effect::Answer(_, Answer::Refused(_)) => "Answer Refused",
    Effect::Answer(_, Answer::Done { .. }) => "Answer Done",
    Effect::Act(Action::Inspect { .. }) => "Inspect",
    Effect::Act(Action::RunHook { .. }) => "RunHook",
    Effect::Act(Action::Stop { .. }) => "Stop",
    Effect::Act(Action::ListInstances { .. }) => "ListInstances",
    Effect::Act(Action::RemoveInstances { .. }) => "RemoveInstances",
    Effect::Act(Action::Report(_)) => "Report",
}

pub(crate) fn node_name(number: usize) -> NodeName {
    NodeName::new(format!("node-{number}"))
}

pub(crate) fn node_number(name: &NodeName) -> usize {
    let number = name.as_str().rsplit('-').next();
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

// === impl Executor ===

impl Executor {
    pub(crate) fn new(origin: u64, slots: usize) -> Self {
        Self {
            host: Host::new(origin),
            slots,
            journal: BTreeMap::new(),
            requesters: BTreeMap::new(),
            reporting: BTreeSet::new(),
            is_away: false,
            is_runtime_away: false,
        }
    }
}

impl Shell for Executor {
    type Machine = Machine;
    type Event = Event;
    type Effect = Effect;
    const PROCESS: Process = Process::Executor;
    const CRASH: Fault = Fault::ExecutorCrash;

    fn of(world: &mut World, index: usize) -> &mut Self {
        &mut world.executors[index]
    }

    fn host(&mut self) -> &mut Host<Machine> {
        &mut self.host
    }

    fn start(&mut self) -> Option<Event> {
        self.requesters.clear();
        self.reporting.clear();
        self.host.machine = Some(Machine::new(Settings {
            max_concurrent_stops: self.slots,
            retention: RETENTION,
            ..Settings::default()
        }));
        let records = self.journal.values().cloned().collect();
        Some(Event::Recovered { records })
    }

    fn tick() -> Event {
        Event::Tick
    }

    fn step(machine: &mut Machine, event: Event, now: Now) -> Vec<Effect> {
        let effects = machine.on_event(event, now);
        let store = effects.store.into_iter().map(Effect::Store);
        let forget = effects.forget.into_iter().map(Effect::Forget);
        let answers = effects.answers.into_iter();
        let answers = answers.map(|(reply, answer)| Effect::Answer(reply, answer));
        let actions = effects.actions.into_iter().map(Effect::Act);
        store.chain(forget).chain(answers).chain(actions).collect()
    }

    fn next_deadline(machine: &Machine, now: Now) -> Option<Monotonic> {
        machine.next_deadline(now)
    }

    fn brief_effect(effect: &Effect) -> String {
        match effect {
            Effect::Store(record) => format!("Store {:?} {}", record.stage, record.order.id),
            Effect::Forget(order) => format!("Forget {order}"),
            Effect::Answer(_, answer) => format!("Answer {answer:?}"),
            Effect::Act(action) => format!("{action:?}"),
        }
    }

    fn on_started(_: &mut World, _: usize) {}

    fn on_crashed(world: &mut World, index: usize) {
        if world.is_planted(Plant::JournalCleared) {
            world.executors[index].journal.clear();
        }
        let longest = if world.fault(Fault::LongDowntime) {
            40_000
        } else {
            8_000
        };
        let wait = world.between(100, longest);
        world.after(wait, move |world| world.start::<Self>(index));
    }

    fn carry_out(world: &mut World, index: usize, effect: Effect) {
        world.coverage.count("node effect", name_of(&effect));
        match effect {
            Effect::Store(record) => store(world, index, record),
            Effect::Forget(order) => {
                world.check_forget(&order);
                world.executors[index].journal.remove(&order);
            }
            Effect::Answer(reply, answer) => {
                let asked = world.executors[index].requesters.get(&reply);
                let order = asked.map(|(_, order)| order.clone());
                if let Some(order) = order.filter(|_| !matches!(answer, Answer::Refused(_))) {
                    world.check_answer(index, &order);
                }
                world.send_answer(index, reply, answer);
            }
            Effect::Act(action) => act(world, index, action),
        }
    }
}

fn store(world: &mut World, index: usize, record: Record) {
    let id = record.order.id.clone();
    let is_first = !world.executors[index].journal.contains_key(&id);
    world.ledger.on_stored(&id, &record.stage, world.now);
    let is_skipped = match record.stage {
        Stage::HookDone { .. } => world.is_planted(Plant::HookEndNotStored),
        Stage::Queued | Stage::Begun { .. } | Stage::Finished { .. } => {
            is_first && world.is_planted(Plant::AnsweredBeforeStored)
        }
    };
    if !is_skipped {
        world.executors[index].journal.insert(id, record);
    }
}

/// Begins work outside; its end is an event.
fn act(world: &mut World, index: usize, action: Action) {
    let wait = world.between(1, 40);
    match action {
        Action::Inspect { order, instance } => finish(world, index, wait, move |world| {
            let observed = if is_runtime_silent(world, index) {
                Observed::Unavailable {
                    message: "away".to_owned(),
                }
            } else {
                observe(world, index, &instance)
            };
            Event::Inspected { order, observed }
        }),
        Action::RunHook { order, limit, .. } => {
            world.check_hook(&order);
            let takes = world.between(10, 8_000);
            finish(world, index, takes.min(limit), move |world| {
                let message = "the hook failed".to_owned();
                let result = if takes >= limit {
                    HookResult::CutOff
                } else if world.fault(Fault::HookFails) {
                    HookResult::Failed { message }
                } else {
                    HookResult::Succeeded
                };
                Event::HookEnded { order, result }
            });
        }
        Action::Stop {
            order,
            container_id,
            timeout,
        } => stop(world, index, order, (container_id, timeout)),
        Action::ListInstances { order, instance } => finish(world, index, wait, move |world| {
            let listed = if is_runtime_silent(world, index) {
                Err("away".to_owned())
            } else {
                Ok(world.list_instances(index, &instance))
            };
            Event::InstancesListed { order, listed }
        }),
        Action::RemoveInstances {
            order,
            instance,
            container_ids,
        } => finish(world, index, wait, move |world| {
            let result = if is_runtime_silent(world, index) {
                Err("away".to_owned())
            } else {
                Ok(world.remove_instances(&instance.pod_uid, &container_ids))
            };
            Event::RemovalEnded { order, result }
        }),
        Action::Report(report) => world.send_report(index, report),
    }
}

/// Gives the end of an action to the life that began it.
fn finish(
    world: &mut World,
    index: usize,
    wait: std::time::Duration,
    end: impl FnOnce(&mut World) -> Event + 'static,
) {
    let life = world.life::<Executor>(index);
    world.after(wait, move |world| {
        if world.is_alive::<Executor>(index, life) {
            let event = end(world);
            world.deliver::<Executor>(index, life, event);
        }
    });
}

fn is_runtime_silent(world: &mut World, index: usize) -> bool {
    world.executors[index].is_runtime_away || world.fault(Fault::RuntimeSilent)
}

fn observe(world: &World, index: usize, instance: &model::order::Instance) -> Observed {
    match world.inspect(index, instance) {
        Observed::Newest(newest) if world.is_planted(Plant::FenceIgnored) => {
            Observed::Newest(ListedInstance {
                container_id: instance.container_id.clone(),
                ..newest
            })
        }
        observed => observed,
    }
}

/// The runtime stops an instance within the time limit, also if the executor crashes meanwhile.
fn stop(
    world: &mut World,
    index: usize,
    order: OrderId,
    (id, timeout): (ContainerId, std::time::Duration),
) {
    let wait = world.between(1, 40);
    world.check_begin(&order);
    if is_runtime_silent(world, index) {
        return finish(world, index, wait, |_| Event::StopEnded {
            order,
            result: StopResult::Unavailable {
                message: "away".to_owned(),
            },
        });
    }
    let mut target = id;
    if world.is_planted(Plant::FenceIgnored) {
        target = newest_of(world, &order, target);
    }
    if world.find_alive(&target).is_none() {
        return finish(world, index, wait, |_| Event::StopEnded {
            order,
            result: StopResult::NotFound,
        });
    }
    world.check_stop(&order, &target);
    let takes = world.between(5, 2_500).min(timeout);
    let has_failed = world.fault(Fault::StopFails);
    let does_stop = !has_failed || world.is_likely(0.5);
    let of = order.clone();
    world.after(takes, move |world| {
        if does_stop {
            world.ledger.on_ended_by(&of, &target);
            world.end_container(&target, 143);
        }
    });
    finish(world, index, takes + wait, move |_| {
        let message = "the runtime reports an error".to_owned();
        let result = if has_failed {
            StopResult::Failed { message }
        } else {
            StopResult::Stopped
        };
        Event::StopEnded { order, result }
    });
}

/// The newest instance of the container that an order is about.
fn newest_of(world: &World, order: &OrderId, named: ContainerId) -> ContainerId {
    let request = order
        .crr_uid()
        .and_then(|uid| world.ledger.requests.get(uid));
    let sandbox = request
        .and_then(|crr| crr.pod_uid.as_ref())
        .and_then(|uid| world.sandboxes.get(uid));
    let mut containers = sandbox.into_iter().flat_map(|sandbox| &sandbox.containers);
    let of_name = containers.find(|container| container.plan.name == order.container);
    let newest = of_name.and_then(|container| container.newest.as_ref());
    newest.map_or(named, |newest| newest.id.clone())
}

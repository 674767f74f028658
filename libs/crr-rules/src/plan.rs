//! The plan for one CRR.
//!
//! Decides which container is stopped next and when a status write is worth its cost; the end of a CRR is in
//! `plan/end.rs`. A plan leaves no choice: a write comes first, orders are sent only beside no write.

mod end;

use model::{
    condition::ConditionType,
    crr::{ContainerRecreateState, ContainerSnapshot, CrrContainer, CrrStatus},
    ids::ContainerId,
    order::{MAX_GRACE, Order, PreStop, Refusal, Stop, Verb},
    order_id::Owner,
    phase::{ContainerPhase, CrrPhase},
    pod::ContainerState,
    time::{Monotonic, Now, after, elapsed},
};
use order_rules::Progress;

use crate::{
    back_off::{BackOffVerdict, judge_back_off},
    conditions::{Situation, conditions},
    container::{Judgement, judge},
    kubernetes_events::{CrrEvent, events},
    limits::{DEFAULT_GRACE, NODE_SILENCE_LIMIT, NODE_SILENCE_SHOWN},
    messages,
    snapshot::{Snapshot, Turn},
    unready::{Drain, drain},
    write::Write,
};

use self::end::{plan_after_end, plan_close, reason_to_end};

/// What a CRR needs now. `default()` is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The one write that is due; nothing is ordered before it is stored.
    pub write: Option<Write>,
    /// Orders to keep outstanding until they are answered: at most one stop, and removals of dead instances.
    pub orders: Vec<Order>,
    /// Have the kubelet sync the pod now.
    pub nudge: bool,
    /// Every Kubernetes event there is a reason for, published before or not.
    pub events: Vec<CrrEvent>,
    /// The pod's status is needed to go on.
    pub needs_pod: bool,
    /// Plan again at that moment even if nothing happens.
    pub wake_at: Option<Monotonic>,
}

// === impl Plan ===

impl Plan {
    fn of(write: Write) -> Self {
        Self {
            write: Some(write),
            ..Self::default()
        }
    }
}

/// Decides what one CRR needs. The same snapshot at the same moment gives the same plan.
pub fn plan(snapshot: &Snapshot, now: Now) -> Plan {
    let plan = match snapshot.crr.status.phase {
        _ if snapshot.crr.is_being_deleted => plan_close(snapshot).unwrap_or_default(),
        Some(CrrPhase::Completed) => plan_after_end(snapshot, now),
        Some(CrrPhase::Pending | CrrPhase::Recreating) | None => plan_active(snapshot, now),
    };
    Plan {
        events: events(snapshot),
        ..plan
    }
}

fn plan_active(snapshot: &Snapshot, now: Now) -> Plan {
    let crr = &snapshot.crr;
    let containers = crr.containers.iter();
    let judgements: Vec<Judgement> = containers
        .map(|container| judge(snapshot, container, now))
        .collect();
    let look_again_at = judgements
        .iter()
        .filter_map(|judgement| judgement.look_again_at)
        .min();
    let states: Vec<_> = judgements
        .into_iter()
        .map(|judgement| judgement.state)
        .collect();
    if let Some(end) = reason_to_end(snapshot, &states, now) {
        let situation = Situation::Ended(end);
        return Plan::of(Write::Status(CrrStatus {
            completed_at: Some(now.wall),
            message: end.message().to_owned(),
            ..status(snapshot, CrrPhase::Completed, situation, states, now)
        }));
    }
    let deadline = crr
        .active_deadline
        .map(|deadline| now.moment_of(after(crr.created_at, deadline)));
    if let Turn::Behind(other) = &snapshot.turn {
        let situation = Situation::Behind(other);
        let status = CrrStatus {
            message: messages::waiting_for(other),
            ..status(snapshot, CrrPhase::Pending, situation, states, now)
        };
        return Plan {
            write: (status != crr.status).then_some(Write::Status(status)),
            wake_at: deadline,
            ..Plan::default()
        };
    }
    let plan = Plan {
        needs_pod: true,
        wake_at: deadline.into_iter().chain(look_again_at).min(),
        ..Plan::default()
    };
    plan_turn(snapshot, states, now, plan)
}

/// A CRR whose turn it is: the pod is drained if that was asked for, then the containers are worked on.
fn plan_turn(
    snapshot: &Snapshot,
    states: Vec<ContainerRecreateState>,
    now: Now,
    plan: Plan,
) -> Plan {
    let (situation, drain_ends) = match drain(snapshot) {
        Drain::Write(write) => {
            let write = Some(write);
            return Plan { write, ..plan };
        }
        Drain::NeedsPod => return plan,
        Drain::Begins => (Situation::Draining, None),
        Drain::Until(end) if now.wall < end => (Situation::Draining, Some(now.moment_of(end))),
        Drain::Until(_) | Drain::NotAsked => (Situation::Working, None),
    };
    let written = &snapshot.crr.status;
    let wanted = status(snapshot, CrrPhase::Recreating, situation, states, now);
    if written.phase != Some(CrrPhase::Recreating) || begins_grace(&wanted, written) {
        let write = Some(Write::Status(wanted));
        return Plan { write, ..plan };
    }
    let plan = Plan {
        wake_at: plan.wake_at.into_iter().chain(drain_ends).min(),
        ..plan
    };
    work(snapshot, wanted, drain_ends.is_some(), now, plan)
}

/// Whether the drain's beginning is in the one status and not yet in the other.
fn begins_grace(wanted: &CrrStatus, written: &CrrStatus) -> bool {
    let grace = ConditionType::PreRecreateGrace;
    wanted.condition(grace).is_some() && written.condition(grace).is_none()
}

/// The work on the containers of a CRR whose start is written.
fn work(snapshot: &Snapshot, wanted: CrrStatus, is_draining: bool, now: Now, plan: Plan) -> Plan {
    let mut wake = vec![plan.wake_at, silence_wake(snapshot, now)];
    let stop = if is_draining {
        None
    } else {
        next_stop(snapshot, &wanted.containers, now)
    };
    let mut removals = Vec::new();
    for (container, state) in snapshot.crr.containers.iter().zip(&wanted.containers) {
        match judge_back_off(snapshot, container, state, now.monotonic) {
            BackOffVerdict::None => {}
            BackOffVerdict::Unclear { until } => wake.push(Some(until)),
            BackOffVerdict::Bites(removal) => removals.push(*removal),
        }
    }
    let mut write = None;
    if wanted != snapshot.crr.status {
        let due = snapshot
            .status_written_at
            .map(|written_at| written_at + snapshot.progress_every);
        match due.filter(|due| now.monotonic < *due) {
            Some(due) => wake.push(Some(due)),
            None => write = Some(Write::Status(wanted)),
        }
    }
    Plan {
        write,
        nudge: needs_nudge(snapshot, &removals),
        orders: stop.into_iter().chain(removals).collect(),
        wake_at: wake.into_iter().flatten().min(),
        ..plan
    }
}

/// True if dead instances were removed and the pod has not been nudged since. Nudging a static pod has no effect: the
/// kubelet does not look at its mirror.
fn needs_nudge(snapshot: &Snapshot, removals: &[Order]) -> bool {
    let is_static = snapshot
        .present_pod()
        .is_some_and(|pod| pod.static_uid.is_some());
    let removed = removals
        .iter()
        .filter_map(|order| snapshot.removed_at.get(&order.id.container));
    let last = removed.max().copied();
    !is_static && last.is_some_and(|last| snapshot.nudged_at.is_none_or(|nudged| nudged < last))
}

/// The status of a phase: states, what pod status says of the new instances, and conditions.
fn status(
    snapshot: &Snapshot,
    phase: CrrPhase,
    situation: Situation<'_>,
    containers: Vec<ContainerRecreateState>,
    now: Now,
) -> CrrStatus {
    CrrStatus {
        phase: Some(phase),
        completed_at: None,
        message: String::new(),
        snapshot: new_instances(snapshot, &containers),
        conditions: conditions(snapshot, &containers, situation, now),
        containers,
    }
}

/// The running successors as pod status shows them; what was known of one stays until more is.
fn new_instances(snapshot: &Snapshot, states: &[ContainerRecreateState]) -> Vec<ContainerSnapshot> {
    let entries = snapshot.crr.containers.iter().zip(states);
    let entries = entries.filter_map(|(container, state)| {
        let known = || {
            let mut known = snapshot.crr.status.snapshot.iter();
            known.find(|entry| entry.name == container.name).cloned()
        };
        let status = snapshot.container_status(&container.name)?;
        let current = status.container_id.as_ref()?;
        let is_running = matches!(status.state, ContainerState::Running { .. });
        let is_new = snapshot.stopped_instance(container) != Some(&current.id);
        if state.phase == ContainerPhase::Pending || !is_new || !is_running {
            return known();
        }
        Some(ContainerSnapshot {
            name: container.name.clone(),
            is_ready: status.is_ready,
            restart_count: status.restart_count,
            container_id: current.clone(),
        })
    });
    entries.collect()
}

/// When silence has to be shown, or has lasted too long.
fn silence_wake(snapshot: &Snapshot, now: Now) -> Option<Monotonic> {
    let silences = snapshot
        .orders
        .values()
        .filter_map(|order| match &order.progress {
            Progress::Unanswered { since, .. } => Some(since.monotonic),
            Progress::Sent | Progress::Accepted | Progress::Refused(_) | Progress::Done(_) => None,
        });
    let moments =
        silences.flat_map(|since| [NODE_SILENCE_SHOWN, NODE_SILENCE_LIMIT].map(|it| since + it));
    moments.filter(|moment| *moment > now.monotonic).min()
}

/// The one stop that should be outstanding: strictly one after the other, in list order.
fn next_stop(snapshot: &Snapshot, states: &[ContainerRecreateState], now: Now) -> Option<Order> {
    for (container, state) in snapshot.crr.containers.iter().zip(states) {
        match state.phase {
            ContainerPhase::Succeeded | ContainerPhase::Failed => {}
            ContainerPhase::Recreating if snapshot.crr.strategy.is_ordered => return None,
            ContainerPhase::Recreating => {}
            ContainerPhase::Pending => return stop_order(snapshot, container, now),
        }
    }
    None
}

fn stop_order(snapshot: &Snapshot, container: &CrrContainer, now: Now) -> Option<Order> {
    let crr = &snapshot.crr;
    let (container_id, restart_count) = target(snapshot, container)?;
    let grace = crr.strategy.termination_grace;
    let pre_stop = match &container.pre_stop {
        Some(hook) => Some(addressed(hook.clone(), snapshot)?),
        None => None,
    };
    let stop = Stop {
        grace: grace.unwrap_or(DEFAULT_GRACE).min(MAX_GRACE),
        pre_stop,
        // After its deadline nothing more of a CRR begins, also where a node has to let it wait.
        begin_within: crr
            .active_deadline
            .map(|deadline| elapsed(now.wall, after(crr.created_at, deadline))),
    };
    Some(Order::new(
        Owner::Crr(crr.uid.clone()),
        snapshot.instance(&container.name, container_id, restart_count)?,
        snapshot.reason(),
        Verb::Stop(stop),
    ))
}

/// A hook without a host means the pod's address. The node finds it out, but for a pod in the node's own network; `None`
/// until the pod is seen and says which it is.
fn addressed(mut hook: PreStop, snapshot: &Snapshot) -> Option<PreStop> {
    match &mut hook {
        PreStop::HttpGet { host, .. } | PreStop::TcpSocket { host, .. } if host.is_none() => {
            host.clone_from(&snapshot.present_pod()?.host_address);
        }
        PreStop::HttpGet { .. }
        | PreStop::TcpSocket { .. }
        | PreStop::Exec { .. }
        | PreStop::Sleep { .. } => {}
    }
    Some(hook)
}

/// The instance to stop: the fence's; if the node knows a newer one and the stop is forced, that one.
fn target(snapshot: &Snapshot, container: &CrrContainer) -> Option<(ContainerId, u32)> {
    if let Some(Progress::Refused(Refusal::OtherInstance {
        container_id,
        restart_count,
    })) = snapshot.progress(&container.name)
        && snapshot.crr.strategy.is_forced
    {
        return Some((container_id.clone(), *restart_count));
    }
    match &container.fence {
        Some(fence) => Some((fence.container_id.id.clone(), fence.restart_count)),
        None => {
            let status = snapshot.present_pod()?.container(&container.name)?;
            Some((
                status.container_id.as_ref()?.id.clone(),
                status.restart_count,
            ))
        }
    }
}

#[cfg(test)]
mod tests;

//! From a snapshot to what is to be done now.
//!
//! Owns the order among containers, the ends of a CRR and the thrift of its status writes. A plan leaves
//! nothing to choose: the scheduler writes the status first, and only then sends the order.

use jiff::Timestamp;
use model::{
    crr::{ContainerRecreateState, CrrContainer, CrrStatus, FailurePolicy},
    ids::{ContainerId, OrderId},
    order::{Instance, Refusal, StopOrder, StopOutcome},
    phase::{ContainerPhase, CrrPhase},
};

use crate::{
    DEFAULT_GRACE, NODE_SILENCE_LIMIT, NODE_SILENCE_SHOWN, OrderProgress, PROGRESS_INTERVAL,
    PodView, Silence, Snapshot, Turn,
    container::{Judgement, elapsed, judge, present_pod},
    messages,
};

/// What a CRR needs now. `default()` is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Write this status; nothing else of the plan may be done before it is stored.
    pub status: Option<CrrStatus>,
    /// Keep this one stop outstanding until it is answered; `attempt` is the order book's.
    pub order: Option<StopOrder>,
    /// Take the `active` label off.
    pub remove_active_label: bool,
    /// Delete the CRR: its time to live is over.
    pub delete: bool,
    /// The pod's status is needed to go on.
    pub needs_pod: bool,
    /// Plan again at that moment even if nothing happens.
    pub wake_at: Option<Timestamp>,
}

/// Decides what one CRR needs. The same snapshot at the same moment gives the same plan.
pub fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan {
    if snapshot.crr.is_being_deleted {
        return Plan::default();
    }
    match snapshot.crr.status.phase {
        Some(CrrPhase::Completed) => plan_after_end(snapshot, now),
        Some(CrrPhase::Pending | CrrPhase::Recreating) | None => plan_active(snapshot, now),
    }
}

/// After the end: a stop that was in flight is still told, the label goes, later the CRR.
fn plan_after_end(snapshot: &Snapshot, now: Timestamp) -> Plan {
    let crr = &snapshot.crr;
    let late = late_results(snapshot);
    if late != crr.status.containers {
        let status = CrrStatus {
            containers: late,
            ..crr.status.clone()
        };
        return Plan {
            status: Some(status),
            ..Plan::default()
        };
    }
    if crr.is_labelled_active {
        return Plan {
            remove_active_label: true,
            ..Plan::default()
        };
    }
    let Some((ttl, completed_at)) = crr.ttl_after_finished.zip(crr.status.completed_at) else {
        return Plan::default();
    };
    let ends_at = completed_at + ttl;
    if now >= ends_at {
        Plan {
            delete: true,
            ..Plan::default()
        }
    } else {
        Plan {
            wake_at: Some(ends_at),
            ..Plan::default()
        }
    }
}

/// The written states, with the stops that ended after the CRR did.
fn late_results(snapshot: &Snapshot) -> Vec<ContainerRecreateState> {
    let told = |state: &ContainerRecreateState| {
        let order = snapshot.orders.get(&state.name);
        let was_stopped = order.is_some_and(|order| {
            matches!(
                &order.progress,
                OrderProgress::Done(StopOutcome::Stopped { .. })
            )
        });
        if state.phase == ContainerPhase::Pending && was_stopped {
            let phase = ContainerPhase::Recreating;
            ContainerRecreateState {
                phase,
                is_killed: true,
                ..state.clone()
            }
        } else {
            state.clone()
        }
    };
    snapshot.crr.status.containers.iter().map(told).collect()
}

fn plan_active(snapshot: &Snapshot, now: Timestamp) -> Plan {
    let crr = &snapshot.crr;
    let judgements: Vec<Judgement> = crr
        .containers
        .iter()
        .map(|container| judge(snapshot, container, now))
        .collect();
    let states: Vec<_> = judgements
        .iter()
        .map(|judgement| judgement.state.clone())
        .collect();

    if let Some(message) = reason_to_end(snapshot, &states, now) {
        return plan_end(states, message, now);
    }
    let deadline = crr
        .active_deadline
        .map(|deadline| crr.created_at + deadline);
    if let Turn::Behind(other) = &snapshot.turn {
        let message = format!("waiting for ContainerRecreateRequest {other} of the same pod");
        let status = (crr.status.phase != Some(CrrPhase::Pending) || crr.status.message != message)
            .then_some(CrrStatus {
                phase: Some(CrrPhase::Pending),
                completed_at: None,
                message,
                containers: states,
            });
        return Plan {
            status,
            wake_at: deadline,
            ..Plan::default()
        };
    }
    if crr.status.phase != Some(CrrPhase::Recreating) {
        return Plan {
            status: Some(recreating(states)),
            needs_pod: true,
            ..Plan::default()
        };
    }
    let order = next_stop(snapshot, &states);
    let mut wake = vec![deadline, silence_wake(snapshot, now)];
    wake.extend(judgements.iter().map(|judgement| judgement.look_again_at));
    let mut status = None;
    if states != crr.status.containers {
        let due = snapshot
            .status_written_at
            .map(|written_at| written_at + PROGRESS_INTERVAL);
        match due.filter(|due| now < *due) {
            Some(due) => wake.push(Some(due)),
            None => status = Some(recreating(states)),
        }
    }
    let wake_at = wake.into_iter().flatten().min();
    Plan {
        status,
        order,
        needs_pod: true,
        wake_at,
        ..Plan::default()
    }
}

fn recreating(containers: Vec<ContainerRecreateState>) -> CrrStatus {
    CrrStatus {
        phase: Some(CrrPhase::Recreating),
        completed_at: None,
        message: String::new(),
        containers,
    }
}

fn plan_end(containers: Vec<ContainerRecreateState>, message: &str, now: Timestamp) -> Plan {
    let status = CrrStatus {
        phase: Some(CrrPhase::Completed),
        completed_at: Some(now),
        message: message.to_owned(),
        containers,
    };
    Plan {
        status: Some(status),
        ..Plan::default()
    }
}

/// Why the CRR ends now, as the status message says it (empty: all containers are through).
fn reason_to_end(
    snapshot: &Snapshot,
    states: &[ContainerRecreateState],
    now: Timestamp,
) -> Option<&'static str> {
    let crr = &snapshot.crr;
    let Some(pod_uid) = &crr.pod_uid else {
        return Some(messages::NOT_ADMITTED);
    };
    let has_pod_gone = match &snapshot.pod {
        PodView::Unknown => false,
        PodView::Gone => true,
        PodView::Present(pod) => pod.uid != *pod_uid || pod.is_being_deleted,
    };
    let has_failed = states
        .iter()
        .any(|state| state.phase == ContainerPhase::Failed)
        && crr.strategy.failure_policy == FailurePolicy::Fail;
    let is_late = crr
        .active_deadline
        .is_some_and(|deadline| now >= crr.created_at + deadline);
    if states.iter().all(|state| state.phase.is_final()) || has_failed {
        Some("")
    } else if has_pod_gone {
        Some(messages::POD_GONE)
    } else if is_late {
        Some(messages::DEADLINE)
    } else if silent_since(snapshot).is_some_and(|since| elapsed(since, now) >= NODE_SILENCE_LIMIT)
    {
        Some(messages::NODE_SILENT)
    } else {
        None
    }
}

/// Since when the node has answered no order though the bus works.
fn silent_since(snapshot: &Snapshot) -> Option<Timestamp> {
    let silences = snapshot
        .orders
        .values()
        .filter_map(|order| match &order.progress {
            OrderProgress::Unanswered {
                since,
                silence: Silence::Node,
            } => Some(*since),
            OrderProgress::Unanswered {
                silence: Silence::Bus,
                ..
            }
            | OrderProgress::Sent
            | OrderProgress::Accepted
            | OrderProgress::Refused(_)
            | OrderProgress::Done(_) => None,
        });
    silences.min()
}

/// When silence has to be shown, or has lasted too long.
fn silence_wake(snapshot: &Snapshot, now: Timestamp) -> Option<Timestamp> {
    let silences = snapshot
        .orders
        .values()
        .filter_map(|order| match &order.progress {
            OrderProgress::Unanswered { since, .. } => Some(*since),
            OrderProgress::Sent
            | OrderProgress::Accepted
            | OrderProgress::Refused(_)
            | OrderProgress::Done(_) => None,
        });
    let moments =
        silences.flat_map(|since| [since + NODE_SILENCE_SHOWN, since + NODE_SILENCE_LIMIT]);
    moments.filter(|moment| *moment > now).min()
}

/// The one stop that should be outstanding: strictly serial, in list order.
fn next_stop(snapshot: &Snapshot, states: &[ContainerRecreateState]) -> Option<StopOrder> {
    for (container, state) in snapshot.crr.containers.iter().zip(states) {
        match state.phase {
            ContainerPhase::Succeeded | ContainerPhase::Failed => {}
            ContainerPhase::Recreating if snapshot.crr.strategy.is_ordered => return None,
            ContainerPhase::Recreating => {}
            ContainerPhase::Pending => return stop_order(snapshot, container),
        }
    }
    None
}

fn stop_order(snapshot: &Snapshot, container: &CrrContainer) -> Option<StopOrder> {
    let crr = &snapshot.crr;
    let (container_id, restart_count) = target(snapshot, container)?;
    Some(StopOrder {
        id: OrderId::stop(&crr.uid, &container.name),
        attempt: 0,
        instance: Instance {
            namespace: crr.pod.namespace.clone(),
            pod: crr.pod.name.clone(),
            pod_uid: crr.pod_uid.clone()?,
            container: container.name.clone(),
            container_id,
            restart_count,
        },
        grace: crr.strategy.termination_grace.unwrap_or(DEFAULT_GRACE),
        pre_stop: container.pre_stop.clone(),
        reason: format!("ContainerRecreateRequest {}", crr.key),
    })
}

/// The instance to stop: the fence's; if the node knows a newer one and the stop is forced, that one.
fn target(snapshot: &Snapshot, container: &CrrContainer) -> Option<(ContainerId, u32)> {
    let order = snapshot.orders.get(&container.name);
    if let Some(OrderProgress::Refused(Refusal::OtherInstance {
        container_id,
        restart_count,
    })) = order.map(|order| &order.progress)
        && snapshot.crr.strategy.is_forced
    {
        return Some((container_id.clone(), *restart_count));
    }
    match &container.fence {
        Some(fence) => Some((fence.container_id.id.clone(), fence.restart_count)),
        None => {
            let status = present_pod(snapshot)?.container(&container.name)?;
            Some((
                status.container_id.as_ref()?.id.clone(),
                status.restart_count,
            ))
        }
    }
}

#[cfg(test)]
mod tests;

//! How a CRR ends, and what is left to do after it.
//!
//! Owns the reasons to end, late results, giving back what is held, and the time to live.

use model::{
    crr::{ContainerRecreateState, CrrStatus, FailurePolicy},
    order::Outcome,
    phase::ContainerPhase,
    time::{Monotonic, Now, after},
};
use order_rules::{Progress, Silence};

use super::Plan;
use crate::{
    conditions::End,
    limits::NODE_SILENCE_LIMIT,
    snapshot::{PodView, Snapshot},
    unready::{Release, release},
    write::Write,
};

/// After the end: a stop that was in flight is still told, the pod is let go, the label goes, later the CRR.
pub(super) fn plan_after_end(snapshot: &Snapshot, now: Now) -> Plan {
    let crr = &snapshot.crr;
    let late = late_results(snapshot);
    if late != crr.status.containers {
        return Plan::of(Write::Status(CrrStatus {
            containers: late,
            ..crr.status.clone()
        }));
    }
    if let Some(plan) = plan_close(snapshot) {
        return plan;
    }
    let Some((ttl, completed_at)) = crr.ttl_after_finished.zip(crr.status.completed_at) else {
        return Plan::default();
    };
    let ends_at = after(completed_at, ttl);
    if now.wall >= ends_at {
        Plan::of(Write::Delete)
    } else {
        Plan {
            wake_at: Some(now.moment_of(ends_at)),
            ..Plan::default()
        }
    }
}

/// Gives back what the CRR holds: the pod's readiness first, then its own marks.
pub(super) fn plan_close(snapshot: &Snapshot) -> Option<Plan> {
    let crr = &snapshot.crr;
    match release(snapshot) {
        Release::Write(write) => Some(Plan {
            needs_pod: true,
            ..Plan::of(write)
        }),
        Release::NeedsPod => Some(Plan {
            needs_pod: true,
            ..Plan::default()
        }),
        Release::Done => {
            let is_marked = crr.is_labelled_active && !crr.is_being_deleted;
            (crr.has_finalizer() || is_marked).then(|| Plan::of(Write::Close))
        }
    }
}

/// The written states, with the stops that ended after the CRR did.
fn late_results(snapshot: &Snapshot) -> Vec<ContainerRecreateState> {
    let told = |state: &ContainerRecreateState| {
        let order = snapshot.orders.get(&state.name);
        let was_stopped = order.is_some_and(|order| {
            matches!(&order.progress, Progress::Done(Outcome::Stopped { .. }))
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

/// Why the CRR ends now, if it does.
pub(super) fn reason_to_end(
    snapshot: &Snapshot,
    states: &[ContainerRecreateState],
    now: Now,
) -> Option<End> {
    let crr = &snapshot.crr;
    let (Some(pod_uid), Some(_)) = (&crr.pod_uid, &crr.node) else {
        return Some(End::NotAdmitted);
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
        .is_some_and(|deadline| now.wall >= after(crr.created_at, deadline));
    if states.iter().all(|state| state.phase.is_final()) || has_failed {
        Some(End::Through)
    } else if has_pod_gone {
        Some(End::PodGone)
    } else if is_late {
        Some(End::Deadline)
    } else if silent_since(snapshot, states)
        .is_some_and(|since| now.monotonic - since >= NODE_SILENCE_LIMIT)
    {
        Some(End::NodeSilent)
    } else {
        None
    }
}

/// Since when the node has answered no order though the bus works. What it said of a container that waits for nothing
/// from it any more does not count.
fn silent_since(snapshot: &Snapshot, states: &[ContainerRecreateState]) -> Option<Monotonic> {
    let waiting = states
        .iter()
        .filter(|state| state.phase == ContainerPhase::Pending);
    let silences = waiting
        .filter_map(|state| snapshot.progress(&state.name))
        .filter_map(|progress| match progress {
            Progress::Unanswered {
                since,
                silence: Silence::Node,
            } => Some(since.monotonic),
            Progress::Unanswered {
                silence: Silence::Bus,
                ..
            }
            | Progress::Sent
            | Progress::Accepted
            | Progress::Refused(_)
            | Progress::Done(_) => None,
        });
    silences.min()
}

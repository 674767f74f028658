//! The crash-loop back-off that keeps a stopped container from coming back.
//!
//! Owns its sign (measured): the kubelet has published the end of the instance and shows no successor 300 ms later. Then
//! the node removes the dead instances, and a nudge has the kubelet sync the pod now.

use std::time::Duration;

use model::{
    crr::{ContainerRecreateState, CrrContainer},
    order::{Order, Verb},
    order_id::Owner,
    phase::ContainerPhase,
    pod::ContainerState,
    time::Monotonic,
};

use crate::{container::will_not_return, snapshot::Snapshot};

/// From the published end to the conclusion that a back-off bites.
const BITES_AFTER: Duration = Duration::from_millis(300);

/// The kubelet's reason for a container that it lets wait after a crash.
const BACKING_OFF: &str = "CrashLoopBackOff";

/// The state of the back-off for one container.
pub(crate) enum BackOffVerdict {
    /// There is none, or it must be left alone.
    None,
    /// It shows itself at that moment at the earliest.
    Unclear { until: Monotonic },
    /// It keeps the container down: this order ends it.
    Bites(Box<Order>),
}

pub(crate) fn judge_back_off(
    snapshot: &Snapshot,
    container: &CrrContainer,
    state: &ContainerRecreateState,
    now: Monotonic,
) -> BackOffVerdict {
    let crr = &snapshot.crr;
    let is_wanted = state.phase == ContainerPhase::Recreating
        && (state.is_killed || crr.strategy.is_forced)
        && !crr.respects_back_off;
    let status = snapshot.container_status(&container.name);
    let stopped = snapshot.stopped_instance(container);
    let (Some(status), Some(stopped), true) = (status, stopped, is_wanted) else {
        return BackOffVerdict::None;
    };
    let is_current = status.container_id.as_ref().map(|id| &id.id) == Some(stopped);
    // A container that waits for another reason, such as an image, is not helped by a removal.
    let is_down = match &status.state {
        ContainerState::Terminated { .. } => true,
        ContainerState::Waiting { reason, .. } => reason.as_deref() == Some(BACKING_OFF),
        ContainerState::Running { .. } => false,
    };
    // The kubelet applies no back-off to a first restart.
    let may_bite = status.restart_count > 0 && will_not_return(status).is_none();
    if !(is_current && is_down && may_bite) {
        return BackOffVerdict::None;
    }
    let Some(seen) = snapshot.seen_down.get(&container.name) else {
        return BackOffVerdict::None; // Recorded when the pod is seen.
    };
    let until = seen.since + BITES_AFTER;
    if now < until {
        return BackOffVerdict::Unclear { until };
    }
    let instance = snapshot.instance(&container.name, stopped.clone(), status.restart_count);
    let Some(instance) = instance else {
        return BackOffVerdict::None;
    };
    let owner = Owner::Crr(crr.uid.clone());
    let order = Order::new(
        owner,
        instance,
        snapshot.reason(),
        Verb::RemoveDeadInstances,
    );
    BackOffVerdict::Bites(Box::new(order))
}

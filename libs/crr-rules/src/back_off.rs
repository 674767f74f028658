//! Whether a crash-loop back-off keeps a stopped container from coming back, and what is done about it.
//!
//! Owns the sign (facts, measured): the kubelet has published the end of the instance and shows no successor 300 ms
//! later. Then the node drops the dead instances, and a nudge has the kubelet look at the pod now.

use std::time::Duration;

use jiff::Timestamp;
use model::{
    crr::{ContainerRecreateState, CrrContainer},
    ids::OrderId,
    order::{DropOrder, Instance},
    pause::Pause,
    phase::ContainerPhase,
    pod::ContainerState,
};

use crate::{
    Snapshot,
    container::{container_status, node_pod_uid, stopped_instance, will_not_return},
};

/// From the published end to the conclusion that a back-off bites.
const BITES_AFTER: Duration = Duration::from_millis(300);

/// The kubelet's reason for a container that it lets wait after a crash.
const BACKING_OFF: &str = "CrashLoopBackOff";

/// What a container's return needs.
pub(crate) enum Return {
    /// Nothing but time.
    ByItself,
    /// Perhaps a drop, from that moment on.
    Unclear { until: Timestamp },
    /// The dead instances have to go.
    Drop(DropOrder),
}

pub(crate) fn judge_back_off(
    snapshot: &Snapshot,
    container: &CrrContainer,
    state: &ContainerRecreateState,
    now: Timestamp,
) -> Return {
    let crr = &snapshot.crr;
    let is_wanted = state.phase == ContainerPhase::Recreating
        && (state.is_killed || crr.strategy.is_forced)
        && !crr.respects_back_off;
    let status = container_status(snapshot, &container.name);
    let stopped = stopped_instance(snapshot, container);
    let (Some(status), Some(stopped), true) = (status, stopped, is_wanted) else {
        return Return::ByItself;
    };
    let is_current = status.container_id.as_ref().map(|id| &id.id) == Some(stopped);
    // Whoever waits for another reason, such as an image, is not helped by a drop.
    let is_down = match &status.state {
        ContainerState::Terminated { .. } => true,
        ContainerState::Waiting { reason, .. } => reason.as_deref() == Some(BACKING_OFF),
        ContainerState::Running { .. } => false,
    };
    // The kubelet lets nobody wait for a first restart.
    let may_bite = status.restart_count > 0 && will_not_return(status).is_none();
    if !(is_current && is_down && may_bite) {
        return Return::ByItself;
    }
    let Some(seen) = snapshot.seen_down.get(&container.name) else {
        return Return::ByItself; // Not noted yet: what shows the pod notes it.
    };
    let pause = Pause::new(seen.since, BITES_AFTER);
    if !pause.is_over(now) {
        let until = pause.ends_at();
        return Return::Unclear { until };
    }
    let Some(pod_uid) = node_pod_uid(snapshot) else {
        return Return::ByItself;
    };
    Return::Drop(DropOrder {
        id: OrderId::drop_dead(&crr.uid, &container.name),
        attempt: 0,
        instance: Instance {
            namespace: crr.pod.namespace.clone(),
            pod: crr.pod.name.clone(),
            pod_uid,
            container: container.name.clone(),
            container_id: stopped.clone(),
            restart_count: status.restart_count,
        },
        reason: format!("ContainerRecreateRequest {}", crr.key),
    })
}

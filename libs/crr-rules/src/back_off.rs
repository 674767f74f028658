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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::{
        crr::{Crr, CrrStatus, Fence, Strategy},
        ids::{CrrKey, PodKey, RuntimeContainerId},
        pod::{ContainerStatus, Pod, PodPhase, RestartPolicy},
    };

    use super::*;
    use crate::{PodView, Seen, Turn};

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(milliseconds).unwrap()
    }

    fn web() -> PodKey {
        PodKey {
            namespace: "shop".into(),
            name: "web".into(),
        }
    }

    fn crr(container: CrrContainer) -> Crr {
        Crr {
            key: CrrKey {
                namespace: "shop".into(),
                name: "restart".into(),
            },
            uid: "crr-uid".into(),
            created_at: at(0),
            is_being_deleted: false,
            is_labelled_active: true,
            finalizers: Vec::new(),
            requested_by: None,
            respects_back_off: false,
            pod: web(),
            pod_uid: Some("pod-uid".into()),
            node: Some("node-1".into()),
            containers: vec![container],
            strategy: Strategy::default(),
            active_deadline: None,
            ttl_after_finished: None,
            status: CrrStatus::default(),
            trace_parent: None,
        }
    }

    fn pod(status: ContainerStatus) -> Pod {
        Pod {
            key: web(),
            uid: "pod-uid".into(),
            node: Some("node-1".into()),
            phase: PodPhase::Running,
            restart_policy: RestartPolicy::Always,
            is_being_deleted: false,
            containers: vec![status],
            version: "1".to_owned(),
            gate: None,
            are_containers_ready: false,
            is_initialized: true,
            static_uid: None,
            host_address: None,
        }
    }

    /// The stopped instance of a second restart, seen down from that moment on.
    fn down_since(since: Timestamp) -> Snapshot {
        let container_id: RuntimeContainerId = "containerd://old".parse().unwrap();
        let status = ContainerStatus {
            name: "app".into(),
            container_id: Some(container_id.clone()),
            restart_count: 1,
            is_ready: false,
            state: ContainerState::Terminated {
                exit_code: 143,
                reason: None,
            },
            restart_policy: RestartPolicy::Always,
            is_sidecar: false,
        };
        let fence = Fence {
            container_id: container_id.clone(),
            restart_count: 1,
        };
        let container = CrrContainer {
            name: "app".into(),
            pre_stop: None,
            hook_fault: None,
            fence: Some(fence),
        };
        let seen = Seen {
            container_id,
            since,
        };
        Snapshot {
            crr: crr(container),
            pod: PodView::Present(Box::new(pod(status))),
            orders: BTreeMap::new(),
            seen_running: BTreeMap::new(),
            seen_down: BTreeMap::from([("app".into(), seen)]),
            dropped_at: BTreeMap::new(),
            nudged_at: None,
            turn: Turn::Mine,
            status_written_at: None,
            progress_every: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_clock_that_is_set_back_puts_no_conclusion_off() {
        let hour = 3_600_000;
        let snapshot = down_since(at(hour));
        let state = ContainerRecreateState {
            name: "app".into(),
            phase: ContainerPhase::Recreating,
            message: String::new(),
            is_killed: true,
        };
        let judge = |now| judge_back_off(&snapshot, &snapshot.crr.containers[0], &state, at(now));
        let Return::Unclear { until } = judge(hour + 299) else {
            panic!("concluded too early");
        };
        assert_eq!(until, at(hour + 300));
        for now in [hour + 300, hour - 1, 0] {
            assert!(matches!(judge(now), Return::Drop(_)), "{now}");
        }
    }
}

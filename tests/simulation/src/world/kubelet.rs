//! The kubelet of every node: starts what may start, and writes pod status.
//!
//! Owns restart policies, the crash-loop back-off (10 s doubled up to 5 min, only while a dead instance is there), and the
//! keys of launch barriers.

use std::time::Duration;

use model::{
    ids::PodUid,
    launch::{BARRIER_SUFFIX, Priority},
    pod::{ContainerState, ContainerStatus, PodPhase, RestartPolicy},
};

use super::{
    World, ms,
    process::true_wall,
    runtime::{Container, Sandbox},
};
use crate::api_server::Precondition;

/// Why a container is not started now.
enum Hold {
    /// It has ended and stays so, or its pod is being deleted.
    ForGood,
    /// Its key is not in the ConfigMap.
    Key,
    BackOff {
        until: Duration,
    },
}

fn back_off(restarts: u32) -> Duration {
    match restarts {
        0 => Duration::ZERO,
        _ => ms(10_000)
            .saturating_mul(1 << (restarts - 1).min(5))
            .min(ms(300_000)),
    }
}

/// True if a container that ended with that code is not started again.
pub(crate) fn stays_ended(policy: RestartPolicy, code: i32) -> bool {
    match policy {
        RestartPolicy::Always => false,
        RestartPolicy::OnFailure => code == 0,
        RestartPolicy::Never => true,
    }
}

// === impl World ===

impl World {
    /// One look of the kubelet at a pod.
    pub(crate) fn sync_pod(&mut self, pod: &PodUid) {
        let Some(sandbox) = self.sandboxes.get(pod) else {
            return;
        };
        if sandbox.is_removed {
            return;
        }
        // An end is often published before the kubelet starts the successor.
        let is_end_news = !self.is_status_current(sandbox) && self.is_likely(0.5);
        if is_end_news {
            self.write_status(pod);
            self.sync_soon(pod);
            return;
        }
        let count = self.sandboxes[pod].containers.len();
        for position in 0..count {
            let sandbox = &self.sandboxes[pod];
            if sandbox.containers[position].is_alive() {
                continue;
            }
            match self.hold(sandbox, &sandbox.containers[position]) {
                None => self.start_container(pod, position),
                Some(Hold::ForGood) => {}
                Some(Hold::Key) => {
                    let wait = self.between(10_000, 16_000);
                    self.sync_after(pod, wait);
                }
                Some(Hold::BackOff { until }) => {
                    let wait = until.saturating_sub(self.now) + self.between(1, 1_000);
                    self.sync_after(pod, wait);
                }
            }
        }
        self.write_status(pod);
    }

    fn sync_after(&mut self, pod: &PodUid, wait: Duration) {
        let pod = pod.clone();
        self.after(wait, move |world| world.sync_pod(&pod));
    }

    fn is_status_current(&self, sandbox: &Sandbox) -> bool {
        let shown = self.api.pods.get(&sandbox.key);
        shown.is_none_or(|shown| shown.pod.containers == self.statuses(sandbox))
    }

    fn hold(&self, sandbox: &Sandbox, container: &Container) -> Option<Hold> {
        if sandbox.is_ending {
            return Some(Hold::ForGood);
        }
        let newest = container.newest.as_ref();
        let code = newest.and_then(|newest| newest.ended).map(|(_, code)| code);
        if code.is_some_and(|code| stays_ended(container.plan.restart_policy, code)) {
            return Some(Hold::ForGood);
        }
        if let Some(priority) = container.plan.priority
            && !self.has_key(sandbox, priority)
        {
            return Some(Hold::Key);
        }
        let dead = container.instances.last()?;
        let (ended_at, _) = dead.ended?;
        let until = ended_at + back_off(dead.restart_count);
        (self.now < until).then_some(Hold::BackOff { until })
    }

    fn has_key(&self, sandbox: &Sandbox, priority: Priority) -> bool {
        let map = self.api.maps.get(&sandbox.key);
        map.is_some_and(|map| map.keys.contains(&priority))
    }

    /// Pod status as it is true now.
    pub(super) fn statuses(&self, sandbox: &Sandbox) -> Vec<ContainerStatus> {
        let containers = sandbox.containers.iter();
        containers.map(|it| self.status(sandbox, it)).collect()
    }

    fn status(&self, sandbox: &Sandbox, container: &Container) -> ContainerStatus {
        let newest = container.newest.as_ref();
        let is_alive = container.is_alive();
        let waiting = |reason: &str, message: Option<String>| ContainerState::Waiting {
            reason: Some(reason.to_owned()),
            message,
        };
        let state = match (newest, self.hold(sandbox, container)) {
            (Some(newest), _) if is_alive => ContainerState::Running {
                started_at: Some(true_wall(newest.started_at)),
            },
            (_, Some(Hold::Key)) => {
                let message = format!("no key in ConfigMap {}{BARRIER_SUFFIX}", sandbox.key);
                waiting("CreateContainerConfigError", Some(message))
            }
            (Some(newest), Some(Hold::BackOff { .. })) if self.is_long_dead(newest.ended) => {
                waiting("CrashLoopBackOff", None)
            }
            (Some(newest), _) => ContainerState::Terminated {
                exit_code: newest.ended.map_or(0, |(_, code)| code),
                reason: None,
            },
            (None, _) => waiting("ContainerCreating", None),
        };
        ContainerStatus {
            name: container.plan.name.clone(),
            container_id: newest.and_then(|newest| format!("sim://{}", newest.id).parse().ok()),
            restart_count: newest.map_or(0, |newest| newest.restart_count),
            is_ready: newest.is_some_and(|newest| is_alive && newest.ready_at <= self.now),
            state,
            restart_policy: container.plan.restart_policy,
            is_sidecar: false,
        }
    }

    /// The kubelet shows the end first, and the back-off when it next looks.
    fn is_long_dead(&self, ended: Option<(Duration, i32)>) -> bool {
        ended.is_some_and(|(at, _)| at + ms(1_000) < self.now)
    }

    /// Writes pod status, if anything in it changed.
    fn write_status(&mut self, uid: &PodUid) {
        let sandbox = &self.sandboxes[uid];
        let statuses = self.statuses(sandbox);
        let key = sandbox.key.clone();
        let policy = sandbox.plan.restart_policy;
        let have_ended = sandbox.containers.iter().all(|container| {
            let ended = container.newest.as_ref().and_then(|newest| newest.ended);
            ended.is_some_and(|(_, code)| stays_ended(policy, code))
        });
        let is_same = |shown: &model::pod::Pod| shown.containers == statuses;
        match self.api.pods.get(&key) {
            Some(shown) if shown.pod.uid == *uid && !is_same(&shown.pod) => {}
            Some(_) | None => return,
        }
        for status in &statuses {
            if status.is_ready {
                self.ledger.on_ready_shown(uid, status);
            }
        }
        let precondition = Precondition::uid(uid.as_str());
        let written = self.api.change_pod(&key, &precondition, |pod| {
            pod.pod.are_containers_ready = statuses.iter().all(|status| status.is_ready);
            pod.pod.containers = statuses;
            pod.pod.phase = if have_ended {
                PodPhase::Succeeded
            } else {
                PodPhase::Running
            };
        });
        if written.is_err() {
            self.trace(|_| format!("the status of pod {key} is not written"));
        }
    }
}

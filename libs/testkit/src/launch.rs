//! Pods with launch priorities, and the ConfigMaps that open their levels.

use std::collections::BTreeSet;

use model::{
    ids::{ContainerName, PodUid},
    launch::{BarrierMap, LaunchContainer, LaunchPod, Priority},
    pod::{ContainerState, PodPhase},
};

use crate::pod::{container, pod};

/// A pod with launch priorities under construction; [`LaunchPodBuilder::build`] ends it.
#[derive(Clone, Debug)]
pub struct LaunchPodBuilder(LaunchPod);

/// Pod `shop/web` on `node-1` with these containers and priorities, none of them started.
pub fn launch_pod(containers: &[(&str, i32)]) -> LaunchPodBuilder {
    let of_level = |(name, priority): &(&str, i32)| LaunchContainer {
        name: ContainerName::new(*name),
        priority: Priority::new(*priority),
        needs_status: false,
    };
    let plain = pod(&[]).with(|pod| {
        pod.phase = PodPhase::Pending;
        pod.are_containers_ready = false;
    });
    LaunchPodBuilder(LaunchPod {
        pod: plain.build(),
        containers: containers.iter().map(of_level).collect(),
        told: None,
        is_completed: false,
        trace_parent: None,
    })
}

/// The labelled ConfigMap `map-uid` of pod `shop/web`, with the keys of these priorities.
pub fn barrier_map(open: &[i32]) -> BarrierMap {
    BarrierMap {
        uid: "map-uid".to_owned(),
        version: "1".to_owned(),
        owners: vec![PodUid::new("pod-uid")],
        is_labelled: true,
        is_being_deleted: false,
        keys: priorities(open),
    }
}

/// Priorities as a set.
pub fn priorities(of: &[i32]) -> BTreeSet<Priority> {
    of.iter().copied().map(Priority::new).collect()
}

// === impl LaunchPodBuilder ===

impl LaunchPodBuilder {
    pub fn build(self) -> LaunchPod {
        self.0
    }

    /// Changes the pod where no method of the builder does.
    pub fn with(mut self, change: impl FnOnce(&mut LaunchPod)) -> Self {
        change(&mut self.0);
        self
    }

    /// Another pod of the same name.
    pub fn uid(self, uid: &str) -> Self {
        self.with(|launch| launch.pod.uid = uid.into())
    }

    pub fn named(self, name: &str) -> Self {
        self.with(|launch| launch.pod.key.name = name.into())
    }

    pub fn version(self, version: &str) -> Self {
        self.with(|launch| version.clone_into(&mut launch.pod.version))
    }

    pub fn on(self, node: Option<&str>) -> Self {
        self.with(|launch| launch.pod.node = node.map(Into::into))
    }

    /// The container's status shows this state; its instance is `<name>-0`, unless it waits.
    pub fn shows(self, name: &str, state: ContainerState, is_ready: bool) -> Self {
        self.with(|launch| {
            let mut status = container(name);
            if matches!(state, ContainerState::Waiting { .. }) {
                status.container_id = None;
            }
            (status.state, status.is_ready) = (state, is_ready);
            let statuses = &mut launch.pod.containers;
            statuses.retain(|known| known.name != status.name);
            statuses.push(status);
        })
    }

    /// The container runs and is ready.
    pub fn up(self, name: &str) -> Self {
        self.shows(name, ContainerState::Running { started_at: None }, true)
    }

    /// The lowest level that the kubelet was notified of.
    pub fn nudged(self, priority: i32) -> Self {
        self.with(|launch| launch.told = Some(Priority::new(priority)))
    }

    pub fn completed(self) -> Self {
        self.with(|launch| launch.is_completed = true)
    }
}

//! The container runtime of a node: sandboxes with container instances, live and dead.
//!
//! Owns what is true of containers. When the kubelet starts one, and what it shows of it, is in `kubelet.rs`.

use std::time::Duration;

use model::{
    ids::{ContainerId, ContainerName, PodKey, PodUid},
    order::Instance as Fence,
};
use node_rules::{InstanceState, ListedInstance, Observed};

use super::{World, ms};
use crate::scenario::{ContainerPlan, PodPlan};

/// A pod on its node.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox {
    pub(crate) key: PodKey,
    pub(crate) node: usize,
    pub(crate) plan: PodPlan,
    pub(crate) containers: Vec<Container>,
    pub(crate) is_ending: bool,
    pub(crate) is_removed: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Container {
    pub(crate) plan: ContainerPlan,
    /// As the runtime lists them, oldest first.
    pub(crate) instances: Vec<Instance>,
    /// The newest that there ever was, as the kubelet remembers it.
    pub(crate) newest: Option<Instance>,
}

#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub(crate) id: ContainerId,
    pub(crate) restart_count: u32,
    pub(crate) started_at: Duration,
    pub(crate) ready_at: Duration,
    /// When it ended, and with which code.
    pub(crate) ended: Option<(Duration, i32)>,
}

// === impl Container ===

impl Container {
    pub(crate) fn is_alive(&self) -> bool {
        let newest = self.instances.last();
        newest.is_some_and(|instance| instance.ended.is_none())
    }

    fn is_alive_as(&self, id: &ContainerId) -> bool {
        let mut instances = self.instances.iter();
        instances.any(|instance| instance.id == *id && instance.ended.is_none())
    }

    fn find(&mut self, id: &ContainerId) -> Option<&mut Instance> {
        self.instances
            .iter_mut()
            .find(|instance| instance.id == *id)
    }
}

// === impl Sandbox ===

impl Sandbox {
    fn container(&self, name: &ContainerName) -> Option<&Container> {
        self.containers
            .iter()
            .find(|container| container.plan.name == *name)
    }
}

fn state_of(instance: &Instance) -> InstanceState {
    match instance.ended {
        None => InstanceState::Alive,
        Some(_) => InstanceState::Exited,
    }
}

// === impl World ===

impl World {
    /// The sandbox of that pod on that node.
    fn sandbox(&self, node: usize, pod: &PodUid) -> Option<&Sandbox> {
        let sandbox = self.sandboxes.get(pod)?;
        (sandbox.node == node && !sandbox.is_removed).then_some(sandbox)
    }

    pub(crate) fn inspect(&self, node: usize, named: &Fence) -> Observed {
        if self.sandbox(node, &named.pod_uid).is_none() {
            return Observed::NoPod;
        }
        let newest = self.list_instances(node, named).pop();
        newest.map_or(Observed::NoContainer, Observed::Newest)
    }

    pub(crate) fn list_instances(&self, node: usize, named: &Fence) -> Vec<ListedInstance> {
        let sandbox = self.sandbox(node, &named.pod_uid);
        let container = sandbox.and_then(|sandbox| sandbox.container(&named.container));
        let instances = container.map_or(&[][..], |container| &container.instances);
        let listed = instances.iter().map(|instance| ListedInstance {
            container_id: instance.id.clone(),
            restart_count: instance.restart_count,
            created_at: i64::try_from(instance.started_at.as_nanos()).unwrap_or(i64::MAX),
            state: state_of(instance),
        });
        listed.collect()
    }

    /// Removes dead instances and returns how many there were.
    pub(crate) fn remove_instances(&mut self, pod: &PodUid, ids: &[ContainerId]) -> u32 {
        let mut removed = 0;
        let Some(sandbox) = self.sandboxes.get_mut(pod) else {
            return 0;
        };
        for container in &mut sandbox.containers {
            container.instances.retain(|instance| {
                let is_gone = instance.ended.is_some() && ids.contains(&instance.id);
                removed += u32::from(is_gone);
                !is_gone
            });
        }
        removed
    }

    /// The pod and the container of a live instance.
    pub(crate) fn find_alive(&self, id: &ContainerId) -> Option<(PodUid, ContainerName)> {
        self.sandboxes.iter().find_map(|(uid, sandbox)| {
            let containers = &sandbox.containers;
            let of = containers.iter().find(|it| it.is_alive_as(id))?;
            Some((uid.clone(), of.plan.name.clone()))
        })
    }

    /// Starts the next instance of a container.
    pub(super) fn start_container(&mut self, pod: &PodUid, position: usize) {
        let now = self.now;
        let Some(sandbox) = self.sandboxes.get_mut(pod) else {
            return;
        };
        let (node, key) = (sandbox.node, sandbox.key.clone());
        let container = &mut sandbox.containers[position];
        let before = container.newest.as_ref();
        let restart_count = before.map_or(container.plan.restarts, |it| it.restart_count + 1);
        let name = container.plan.name.clone();
        let id = ContainerId::new(format!("{pod}.{name}.{restart_count}"));
        let instance = Instance {
            id: id.clone(),
            restart_count,
            started_at: now,
            ready_at: now + container.plan.ready_after,
            ended: None,
        };
        container.instances.push(instance.clone());
        container.newest = Some(instance.clone());
        let (plan, number) = (
            container.plan.clone(),
            restart_count - container.plan.restarts,
        );
        self.ledger.on_container_started(&id, restart_count, now);
        if !plan.needs_status {
            self.ledger.on_up(pod, &name);
        }
        let ends = plan.ends.get(usize::try_from(number).unwrap_or(usize::MAX));
        if let Some((after, code)) = ends.copied() {
            let id = id.clone();
            self.after(after, move |world| world.end_container(&id, code));
        }
        if plan.priority.is_some() {
            let started = model::launch::Started {
                pod: key,
                pod_uid: pod.clone(),
                container: name,
                container_id: id,
            };
            self.publish_start(node, started);
        }
        let pod = pod.clone();
        self.after(plan.ready_after, move |world| world.sync_soon(&pod));
    }

    /// An instance ends. Nothing happens if it has ended already.
    pub(crate) fn end_container(&mut self, id: &ContainerId, code: i32) {
        let Some((pod, name)) = self.find_alive(id) else {
            return;
        };
        self.trace(|_| format!("{id} ends with {code}"));
        let ended = Some((self.now, code));
        if let Some(sandbox) = self.sandboxes.get_mut(&pod) {
            for container in &mut sandbox.containers {
                if container.plan.name == name {
                    if let Some(instance) = container.find(id) {
                        instance.ended = ended;
                    }
                    container.newest = container.instances.last().cloned();
                }
            }
        }
        self.sync_soon(&pod);
    }

    /// The kubelet looks at the pod within the second.
    pub(crate) fn sync_soon(&mut self, pod: &PodUid) {
        let wait = self.between(5, 900);
        let pod = pod.clone();
        self.after(wait, move |world| world.sync_pod(&pod));
    }

    /// A nudge: the kubelet looks at the pod now.
    pub(crate) fn nudge_kubelet(&mut self, pod: &PodUid) {
        let pod = pod.clone();
        self.after(ms(20), move |world| world.sync_pod(&pod));
    }
}

//! Users and other controllers: they create and delete requests and pods, and admission completes what they create.
//!
//! Owns the deeds of a scenario, pods' creation and removal, and the garbage collection of their ConfigMaps.

use std::{collections::BTreeSet, time::Duration};

use model::{
    crr::{Crr, CrrStatus, Fence},
    ids::{PodKey, PodName, PodUid},
    launch::{BarrierMap, LaunchContainer, LaunchPod},
    pod::Gate,
    presence::PresenceQuestion,
};

use super::{
    World, ms,
    process::true_wall,
    runtime::{Container, Sandbox},
};
use crate::{
    api_server::Precondition,
    scenario::{Deed, Leftover, PodPlan, Setup},
    shell::{executor::node_name, scheduler::Scheduler},
};

/// The entry of another agent in a gate's message.
pub(crate) const OTHER_HOLDER: &str = r#"{"userAgent":"Other","key":"other"}"#;

/// Keeps a deleted request until its owner takes it off.
pub(crate) const FOREIGN_FINALIZER: &str = "example.com/keep";

fn key_of(pod: &PodName) -> PodKey {
    PodKey {
        namespace: "shop".into(),
        name: pod.clone(),
    }
}

// === impl World ===

impl World {
    pub(super) fn place_users(&mut self, setup: Setup) {
        for plan in setup.pods {
            self.place_leftover(&plan);
            self.create_pod(plan);
        }
        for (at, deed) in setup.deeds {
            self.after(at, move |world| world.carry_out_deed(deed));
        }
    }

    fn carry_out_deed(&mut self, deed: Deed) {
        self.trace(|_| format!("user: {deed:?}"));
        let any = Precondition::default();
        match deed {
            Deed::CreateRequest(crr) => self.create_request(*crr),
            Deed::DeleteRequest(name) => {
                let mut known = self.api.crrs.keys();
                if let Some(key) = known.find(|key| key.name.as_str() == name).cloned()
                    && let Ok(crr) = self.api.delete_crr(&key, &any)
                {
                    self.ledger.on_over(&crr.uid, self.now);
                }
            }
            Deed::ReleaseRequests => {
                for key in self.api.crrs.keys().cloned().collect::<Vec<_>>() {
                    let released = self.api.change_crr(&key, &any, |crr| {
                        crr.finalizers
                            .retain(|finalizer| finalizer != FOREIGN_FINALIZER);
                    });
                    debug_assert!(released.is_ok());
                }
            }
            Deed::DeletePod(name) => self.delete_pod(&key_of(&name.into()), None),
            Deed::ReplacePod(name, node) => self.delete_pod(&key_of(&name.into()), Some(node)),
            Deed::EndContainer(pod, container) => {
                let of_pod = self.sandboxes.values();
                let mut live = of_pod.filter(|it| it.key.name.as_str() == pod && !it.is_ending);
                let containers = live.next().map(|it| it.containers.clone());
                let mut containers = containers.into_iter().flatten();
                let ended = containers.find(|it| it.plan.name.as_str() == container);
                if let Some(newest) = ended.and_then(|it| it.newest) {
                    self.end_container(&newest.id, 1);
                }
            }
            Deed::CutOff(node, length) => {
                self.executors[node].is_away = true;
                self.after(length, move |world| world.executors[node].is_away = false);
            }
            Deed::HoldGate(pod) => self.change_gate(&pod.into(), true),
            Deed::ReleaseGate(pod) => self.change_gate(&pod.into(), false),
        }
    }

    /// Another agent adds its entry to the pod's gate, or removes it.
    fn change_gate(&mut self, pod: &PodName, is_held: bool) {
        let changed = self
            .api
            .change_pod(&key_of(pod), &Precondition::default(), |pod| {
                let Some(gate) = &mut pod.pod.gate else {
                    return;
                };
                let mut entries: Vec<serde_json::Value> =
                    serde_json::from_str(&gate.message).unwrap_or_default();
                let other: serde_json::Value =
                    serde_json::from_str(OTHER_HOLDER).unwrap_or_default();
                entries.retain(|entry| *entry != other);
                if is_held {
                    entries.push(other);
                }
                gate.is_open = Some(entries.is_empty());
                gate.message = serde_json::Value::from(entries).to_string();
            });
        if let Ok(pod) = changed {
            self.ledger.on_other_holder(&pod.pod.uid, is_held);
        }
    }

    fn create_pod(&mut self, plan: PodPlan) {
        let uid = PodUid::new(format!("{}-{}", plan.name, self.next_number()));
        let containers = plan.containers.iter().map(|plan| Container {
            plan: plan.clone(),
            instances: Vec::new(),
            newest: None,
        });
        let sandbox = Sandbox {
            key: key_of(&plan.name),
            node: plan.node,
            containers: containers.collect(),
            is_ending: false,
            is_removed: false,
            plan,
        };
        let plan = &sandbox.plan;
        let mut pod = testkit::pod(&[])
            .named(plan.name.as_str())
            .uid(uid.as_str())
            .on(Some(node_name(plan.node).as_str()));
        if plan.has_gate {
            pod = pod.gated(Some(true), "[]");
        }
        let mut pod = pod.build();
        pod.restart_policy = plan.restart_policy;
        pod.containers = self.statuses(&sandbox);
        pod.are_containers_ready = false;
        let barriers = plan.containers.iter().filter_map(|plan| {
            Some(LaunchContainer {
                name: plan.name.clone(),
                priority: plan.priority?,
                needs_status: plan.needs_status,
            })
        });
        self.api.put_pod(launch_pod(pod, barriers.collect()));
        self.sandboxes.insert(uid.clone(), sandbox);
        self.sync_soon(&uid);
    }

    /// Deletes a pod; its node ends the containers, then another one may take its name.
    fn delete_pod(&mut self, key: &PodKey, replaced_on: Option<usize>) {
        let Some(uid) = self.api.pods.get(key).map(|pod| pod.pod.uid.clone()) else {
            return;
        };
        let marked = self.api.change_pod(key, &Precondition::default(), |pod| {
            pod.pod.is_being_deleted = true;
        });
        let Some(sandbox) = self.sandboxes.get_mut(&uid).filter(|_| marked.is_ok()) else {
            return;
        };
        sandbox.is_ending = true;
        for container in self.sandboxes[&uid].containers.clone() {
            if let Some(newest) = container.newest {
                let wait = self.between(200, 2_000);
                self.after(wait, move |world| world.end_container(&newest.id, 143));
            }
        }
        let wait = self.between(2_100, 3_000);
        let key = key.clone();
        self.after(wait, move |world| world.remove_pod(&key, &uid, replaced_on));
    }

    fn remove_pod(&mut self, key: &PodKey, uid: &PodUid, replaced_on: Option<usize>) {
        self.api.remove_pod(key, uid);
        let Some(sandbox) = self.sandboxes.get_mut(uid) else {
            return;
        };
        sandbox.is_removed = true;
        let plan = sandbox.plan.clone();
        if let Some(node) = replaced_on {
            let wait = self.between(1, 1_500);
            self.after(wait, move |world| {
                world.create_pod(PodPlan { node, ..plan });
            });
        }
        let wait = self.between(10, 4_000);
        let (key, uid) = (key.clone(), uid.clone());
        self.after(wait, move |world| {
            let owned = world
                .api
                .maps
                .get(&key)
                .filter(|map| map.owners.contains(&uid));
            if let Some(map) = owned.cloned() {
                let is_being_deleted = true;
                world.api.put_map(
                    &key,
                    BarrierMap {
                        is_being_deleted,
                        ..map
                    },
                );
            }
        });
    }

    /// The ConfigMap of an earlier pod, with every key but the lowest level's.
    fn place_leftover(&mut self, plan: &PodPlan) {
        let Some(leftover) = plan.leftover else {
            return;
        };
        let key = key_of(&plan.name);
        let mut keys: BTreeSet<_> = plan
            .containers
            .iter()
            .filter_map(|it| it.priority)
            .collect();
        keys.pop_first();
        let is_kept = leftover == Leftover::Finalizer;
        if is_kept {
            self.api.kept_maps.push(key.clone());
        }
        let map = BarrierMap {
            uid: format!("leftover-{}", plan.name),
            version: String::new(),
            owners: vec!["an earlier pod".into()],
            is_labelled: true,
            is_being_deleted: is_kept,
            keys,
        };
        self.api.put_map(&key, map);
        self.after(Duration::from_secs(40), move |world| {
            world.api.kept_maps.retain(|kept| *kept != key);
            if let Some(map) = world.api.maps.get(&key).cloned()
                && map.is_being_deleted
            {
                world.api.put_map(&key, map);
            }
        });
    }

    /// Admission: completes the request from the pod as the API server has it now, or refuses it.
    fn create_request(&mut self, mut crr: Crr) {
        let Some(pod) = self.api.pods.get(&crr.pod).map(|pod| pod.pod.clone()) else {
            return;
        };
        if pod.is_being_deleted || self.api.crrs.contains_key(&crr.key) {
            return;
        }
        for container in &mut crr.containers {
            let status = pod.container(&container.name);
            let Some(id) = status.and_then(|status| status.container_id.clone()) else {
                return;
            };
            container.fence = Some(Fence {
                container_id: id,
                restart_count: status.map_or(0, |status| status.restart_count),
            });
        }
        crr.uid = format!("{}-{}", crr.key.name, self.next_number())
            .as_str()
            .into();
        crr.created_at = true_wall(Duration::from_secs(self.now.as_secs()));
        crr.pod_uid = Some(pod.uid);
        crr.node = pod.node;
        crr.status = CrrStatus::default();
        let crr = self.api.put_crr(crr);
        self.ledger.requests.insert(crr.uid.clone(), crr.clone());
        let question = PresenceQuestion {
            node: crr.node.unwrap_or_else(|| node_name(0)),
            pod: Some(crr.pod),
        };
        let reply = crr_rules::ReplyToken(self.next_number());
        self.after(ms(5), move |world| {
            let life = world.life::<Scheduler>(0);
            let event = crr_rules::Event::PresenceAsked { question, reply };
            world.deliver::<Scheduler>(0, life, event);
        });
    }

    /// Another agent of the pod may hold its gate.
    pub(crate) fn is_held_by_other(gate: &Gate) -> bool {
        gate.message.contains("\"other\"")
    }
}

fn launch_pod(pod: model::pod::Pod, containers: Vec<LaunchContainer>) -> LaunchPod {
    LaunchPod {
        pod,
        containers,
        told: None,
        is_completed: false,
        trace_parent: None,
    }
}

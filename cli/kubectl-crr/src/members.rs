//! Pods that one command restarts: their choice, their order, and their current state.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};

use crate::pod::{has_finished, is_leaving, is_ready, node, restartable_containers, statuses};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) containers: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// In the order of their restarts.
    pub(crate) members: Vec<Member>,
    /// A line for each pod that is left out, with the reason.
    pub(crate) left_out: Vec<String>,
    /// Uids of controllers of other pods with the same labels.
    pub(crate) foreign_controllers: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As a StatefulSet rolls.
    HighestOrdinalFirst,
    NodeThenName,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodSummary {
    pub(crate) name: String,
    pub(crate) is_ready: bool,
    pub(crate) is_leaving: bool,
    /// Container ids by container name.
    pub(crate) instances: BTreeMap<String, String>,
}

/// Chooses among pods with the labels those with one of the controllers; without controllers, all.
pub(crate) fn group(pods: &[Pod], controllers: Option<&BTreeSet<String>>, order: Order) -> Group {
    let mut group = Group::default();
    let mut pods: Vec<_> = pods.iter().collect();
    match order {
        Order::HighestOrdinalFirst => pods.sort_by_key(|pod| Reverse(ordinal(pod))),
        Order::NodeThenName => pods.sort_by_key(|pod| (node(pod), pod.name_any())),
    }
    for pod in pods {
        let name = pod.name_any();
        if controllers.is_some_and(|uids| !is_controlled_by(pod, uids)) {
            let controller = controller(pod).unwrap_or_default();
            group.foreign_controllers.insert(controller);
        } else if let Some(reason) = why_left_out(pod) {
            group.left_out.push(format!("{name}: left out: {reason}"));
        } else {
            group.members.push(Member {
                name,
                uid: pod.uid().unwrap_or_default(),
                containers: restartable_containers(pod),
            });
        }
    }
    group
}

fn why_left_out(pod: &Pod) -> Option<&'static str> {
    if has_finished(pod) {
        Some("it has finished")
    } else if is_leaving(pod) {
        Some("it is being deleted")
    } else if node(pod).is_empty() {
        Some("it is on no node yet")
    } else {
        None
    }
}

pub(crate) fn summary(pod: &Pod) -> PodSummary {
    let instances =
        statuses(pod).filter_map(|it| Some((it.name.clone(), it.container_id.clone()?)));
    PodSummary {
        name: pod.name_any(),
        is_ready: is_ready(pod),
        is_leaving: is_leaving(pod),
        instances: instances.collect(),
    }
}

/// The number at the end of a StatefulSet pod's name.
fn ordinal(pod: &Pod) -> Option<u64> {
    pod.name_any().rsplit_once('-')?.1.parse().ok()
}

/// The uid of the object's controller.
pub(crate) fn controller(object: &impl Resource) -> Option<String> {
    let mut owners = object.meta().owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    controller.map(|owner| owner.uid.clone())
}

pub(crate) fn is_controlled_by(object: &impl Resource, uids: &BTreeSet<String>) -> bool {
    controller(object).is_some_and(|uid| uids.contains(&uid))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, node: &str, controller: &str, more: &Value) -> Pod {
        let mut pod = json!({
            "metadata": {
                "name": name, "uid": format!("uid-{name}"),
                "ownerReferences": [
                    { "apiVersion": "v1", "kind": "K", "name": "n", "uid": "other" },
                    { "apiVersion": "v1", "kind": "K", "name": "n", "uid": controller, "controller": true },
                ],
            },
            "spec": { "containers": [{ "name": "app" }] },
        });
        if !node.is_empty() {
            pod["spec"]["nodeName"] = json!(node);
        }
        for (part, fields) in more.as_object().unwrap() {
            for (field, value) in fields.as_object().unwrap() {
                pod[part][field] = value.clone();
            }
        }
        serde_json::from_value(pod).unwrap()
    }

    fn names(group: &Group) -> Vec<&str> {
        group.members.iter().map(|it| it.name.as_str()).collect()
    }

    #[test]
    fn orders_as_the_workload_does() {
        let pods = ["web-9", "web-10", "web-0"].map(|name| pod(name, "n", "c", &json!({})));
        let group = group(&pods, None, Order::HighestOrdinalFirst);
        assert_eq!(names(&group), ["web-10", "web-9", "web-0"]);
        let pods = [("b", "n1"), ("c", "n2"), ("a", "n2")];
        let pods = pods.map(|(name, node)| pod(name, node, "c", &json!({})));
        let group = super::group(&pods, None, Order::NodeThenName);
        assert_eq!(names(&group), ["b", "a", "c"]);
    }

    #[test]
    fn leaves_out_what_cannot_be_restarted_and_who_is_not_ours() {
        let pods = [
            pod("a", "n", "ours", &json!({})),
            pod("b", "n", "other", &json!({})),
            pod(
                "c",
                "n",
                "ours",
                &json!({ "status": { "phase": "Failed" } }),
            ),
            pod(
                "d",
                "n",
                "ours",
                &json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }),
            ),
            pod("e", "", "ours", &json!({})),
            pod("f", "n", "theirs", &json!({})),
        ];
        let ours = BTreeSet::from(["ours".to_owned()]);
        let chosen = group(&pods, Some(&ours), Order::NodeThenName);
        assert_eq!(names(&chosen), ["a"]);
        assert_eq!(
            chosen.left_out,
            [
                "e: left out: it is on no node yet",
                "c: left out: it has finished",
                "d: left out: it is being deleted",
            ]
        );
        let strangers = ["other", "theirs"].map(str::to_owned);
        assert_eq!(chosen.foreign_controllers, BTreeSet::from(strangers));
        let all = group(&pods, None, Order::NodeThenName);
        assert_eq!(names(&all), ["a", "b", "f"]);
    }

    #[test]
    fn sees_readiness_and_instances() {
        let status = json!({ "status": {
            "phase": "Running",
            "conditions": [
                { "type": "ContainersReady", "status": "True" }, { "type": "Ready", "status": "True" },
            ],
            "initContainerStatuses": [{
                "name": "proxy", "containerID": "c://1", "ready": true, "restartCount": 0, "image": "", "imageID": "",
            }],
            "containerStatuses": [{ "name": "app", "ready": false, "restartCount": 0, "image": "", "imageID": "" }],
        }});
        let seen = summary(&pod("a", "n", "c", &status));
        assert!(seen.is_ready && !seen.is_leaving, "{seen:?}");
        let instances = [("proxy".to_owned(), "c://1".to_owned())];
        assert_eq!(seen.instances, BTreeMap::from(instances));
        let conditions = json!([{ "type": "Ready", "status": "False" }]);
        let unready = json!({ "status": { "conditions": conditions } });
        assert!(!summary(&pod("a", "n", "c", &unready)).is_ready);
        assert!(!summary(&pod("a", "n", "c", &json!({}))).is_ready);
    }
}

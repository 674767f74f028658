//! The pods that one command restarts: which, in which order, and what is to be seen of them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::{Resource, ResourceExt};

use crate::request::containers_of;

/// One pod to restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) uid: String,
    /// The containers that can be restarted.
    pub(crate) containers: Vec<String>,
}

/// The pods of one command, in the order in which they are restarted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) members: Vec<Member>,
    /// Pods that are left out, each with the reason.
    pub(crate) left_out: Vec<String>,
    /// Who controls pods that bear the same labels and are not ours.
    pub(crate) strangers: BTreeSet<String>,
}

/// In which order pods are restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As a StatefulSet rolls.
    HighestOrdinalFirst,
    NodeThenName,
}

/// What matters of a pod as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    pub(crate) name: String,
    pub(crate) is_ready: bool,
    /// It ends or has ended: nobody counts on it any more.
    pub(crate) is_leaving: bool,
    /// The instance of each container.
    pub(crate) instances: BTreeMap<String, String>,
}

/// Chooses among pods that bear the labels; without controllers, whoever controls them.
pub(crate) fn group(pods: &[Pod], controllers: Option<&BTreeSet<String>>, order: Order) -> Group {
    let mut group = Group::default();
    let mut pods: Vec<_> = pods.iter().collect();
    match order {
        Order::HighestOrdinalFirst => pods.sort_by_key(|pod| std::cmp::Reverse(ordinal(pod))),
        Order::NodeThenName => pods.sort_by_key(|pod| (node(pod), pod.name_any())),
    }
    for pod in pods {
        if controllers.is_some_and(|controllers| !is_controlled_by(pod, controllers)) {
            group.strangers.insert(controller(pod).unwrap_or_default());
        } else if let Some(reason) = why_left_out(pod) {
            group
                .left_out
                .push(format!("{}: left out: {reason}", pod.name_any()));
        } else {
            group.members.push(Member {
                name: pod.name_any(),
                uid: pod.uid().unwrap_or_default(),
                containers: containers_of(pod),
            });
        }
    }
    group
}

fn why_left_out(pod: &Pod) -> Option<&'static str> {
    if is_finished(pod) {
        Some("it has finished")
    } else if pod.metadata.deletion_timestamp.is_some() {
        Some("it is being deleted")
    } else if node(pod).is_empty() {
        Some("it is on no node yet")
    } else {
        None
    }
}

/// What is to be seen of a pod.
pub(crate) fn sight(pod: &Pod) -> Sight {
    let status = pod.status.as_ref();
    let mut conditions = status
        .into_iter()
        .flat_map(|status| status.conditions.iter().flatten());
    Sight {
        name: pod.name_any(),
        is_ready: conditions.any(|it| it.type_ == "Ready" && it.status == "True"),
        is_leaving: is_finished(pod) || pod.metadata.deletion_timestamp.is_some(),
        instances: statuses(pod)
            .filter_map(|status| Some((status.name.clone(), status.container_id.clone()?)))
            .collect(),
    }
}

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    let init = status.and_then(|status| status.init_container_statuses.as_deref());
    let main = status.and_then(|status| status.container_statuses.as_deref());
    init.unwrap_or_default()
        .iter()
        .chain(main.unwrap_or_default())
}

fn is_finished(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn node(pod: &Pod) -> &str {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.unwrap_or_default()
}

/// The number at the end of a StatefulSet's pod's name.
fn ordinal(pod: &Pod) -> Option<u64> {
    pod.name_any().rsplit_once('-')?.1.parse().ok()
}

/// The uid of the object that controls this one.
pub(crate) fn controller(object: &impl Resource) -> Option<String> {
    let owners = object.meta().owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    controllers.next().map(|owner| owner.uid.clone())
}

/// Whether one of these uids is its controller's.
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
        assert_eq!(chosen.strangers, BTreeSet::from(strangers));
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
        let seen = sight(&pod("a", "n", "c", &status));
        assert!(seen.is_ready && !seen.is_leaving, "{seen:?}");
        let instances = [("proxy".to_owned(), "c://1".to_owned())];
        assert_eq!(seen.instances, BTreeMap::from(instances));
        let conditions = json!([{ "type": "Ready", "status": "False" }]);
        let unready = json!({ "status": { "conditions": conditions } });
        assert!(!sight(&pod("a", "n", "c", &unready)).is_ready);
        assert!(!sight(&pod("a", "n", "c", &json!({}))).is_ready);
    }
}

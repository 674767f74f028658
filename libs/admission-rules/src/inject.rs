//! What admission writes into a creation: labels, defaults, read-only fields, who asked, the trace.

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use model::labels;
use serde_json::{Map, Value, json};

use crate::Facts;

/// The longest label value (Kubernetes).
const LONGEST_LABEL_VALUE: usize = 63;

/// A container of the request, as the pod has it.
pub(crate) struct Target<'a> {
    pub(crate) container: &'a Container,
    pub(crate) status: &'a ContainerStatus,
}

/// Completes a request without faults. Each target has its place in the request's list.
pub(crate) fn complete(
    object: &mut Value,
    pod: &Pod,
    targets: &[(usize, Target<'_>)],
    facts: &Facts,
) {
    write_labels(object, pod);
    if facts.is_node_virtual {
        let virtual_kubelet = json!(labels::NODE_TYPE_VIRTUAL);
        entries(object, "labels").insert(labels::NODE_TYPE.to_owned(), virtual_kubelet);
    }
    write_annotations(object, facts);
    write_strategy(&mut object["spec"], pod);
    for (index, target) in targets {
        write_target(&mut object["spec"]["containers"][*index], target);
    }
}

fn write_annotations(object: &mut Value, facts: &Facts) {
    let annotations = entries(object, "annotations");
    if let Some(trace_parent) = &facts.trace_parent {
        annotations.insert(labels::TRACE_PARENT.to_owned(), json!(trace_parent));
    }
    // What the request itself says of who asks is nobody's word.
    match &facts.requested_by {
        Some(user) => annotations.insert(labels::REQUESTED_BY.to_owned(), json!(user)),
        None => annotations.remove(labels::REQUESTED_BY),
    };
}

fn write_labels(object: &mut Value, pod: &Pod) {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let labels = entries(object, "labels");
    labels.insert(
        labels::CRR_ACTIVE.to_owned(),
        json!(labels::CRR_ACTIVE_TRUE),
    );
    labels.insert(labels::CRR_POD_UID.to_owned(), json!(pod.metadata.uid));
    labels.insert(labels::CRR_NODE_NAME.to_owned(), json!(node));
    match &pod.metadata.name {
        Some(name) if name.len() <= LONGEST_LABEL_VALUE => {
            labels.insert(labels::CRR_POD_NAME.to_owned(), json!(name));
        }
        Some(_) | None => {
            labels.remove(labels::CRR_POD_NAME);
        }
    }
}

fn write_strategy(spec: &mut Value, pod: &Pod) {
    if !spec["strategy"].is_object() {
        spec["strategy"] = json!({});
    }
    let strategy = &mut spec["strategy"];
    if matches!(strategy["failurePolicy"].as_str(), None | Some("")) {
        strategy["failurePolicy"] = json!("Fail");
    }
    let grace = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.termination_grace_period_seconds);
    if strategy["terminationGracePeriodSeconds"].is_null()
        && let Some(grace) = grace
    {
        strategy["terminationGracePeriodSeconds"] = json!(grace);
    }
}

fn write_target(entry: &mut Value, target: &Target<'_>) {
    let Target { container, status } = target;
    let lifecycle = container.lifecycle.as_ref();
    if let Some(hook) = lifecycle.and_then(|lifecycle| lifecycle.pre_stop.as_ref()) {
        entry["preStop"] = json!(hook);
        // The hook may name a port; only then are ports of any use.
        if hook.http_get.is_some() || hook.tcp_socket.is_some() {
            entry["ports"] = json!(container.ports.clone().unwrap_or_default());
        }
    }
    entry["statusContext"] =
        json!({ "containerID": status.container_id, "restartCount": status.restart_count });
}

/// `metadata.labels` or `metadata.annotations`, made where there is none.
fn entries<'a>(object: &'a mut Value, kind: &str) -> &'a mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    let slot = &mut object["metadata"][kind];
    if !slot.is_object() {
        *slot = json!({});
    }
    slot.as_object_mut()
        .expect("it was made an object right above")
}

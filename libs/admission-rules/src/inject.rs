//! Fields that admission writes into a created CRR: labels, defaults, read-only fields, requester and trace.

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use kube_core::{DynamicObject, ResourceExt};
use model::labels;
use serde_json::{Value, json};

use crate::{Facts, Origin, create::node_name};

/// The longest label value (Kubernetes).
const LONGEST_LABEL_VALUE: usize = 63;

/// A container of the pod that the CRR names.
pub(crate) struct Target<'a> {
    /// Its place in the CRR's list.
    pub(crate) index: usize,
    pub(crate) container: &'a Container,
    pub(crate) status: &'a ContainerStatus,
}

/// Completes a CRR without faults.
pub(crate) fn complete(
    object: &mut DynamicObject,
    pod: &Pod,
    targets: &[Target<'_>],
    facts: &Facts,
    origin: &Origin,
) {
    write_labels(object, pod, facts);
    write_annotations(object, origin);
    let spec = &mut object.data["spec"];
    write_strategy(&mut spec["strategy"], pod);
    for target in targets {
        write_target(&mut spec["containers"][target.index], target);
    }
}

fn write_labels(object: &mut DynamicObject, pod: &Pod, facts: &Facts) {
    let name = pod.name_any();
    let labels = object.labels_mut();
    labels.remove(labels::CRR_POD_NAME);
    let is_short = name.len() <= LONGEST_LABEL_VALUE;
    let uid = pod.uid().unwrap_or_default();
    let written = [
        Some((labels::CRR_ACTIVE, labels::CRR_ACTIVE_TRUE)),
        Some((labels::CRR_POD_UID, &*uid)),
        Some((labels::CRR_NODE_NAME, node_name(pod))),
        is_short.then_some((labels::CRR_POD_NAME, &*name)),
        (facts.is_node_virtual).then_some((labels::NODE_TYPE, labels::NODE_TYPE_VIRTUAL)),
    ];
    let written = written.into_iter().flatten();
    labels.extend(written.map(|(label, value)| (label.to_owned(), value.to_owned())));
}

fn write_annotations(object: &mut DynamicObject, origin: &Origin) {
    let annotations = object.annotations_mut();
    if let Some(traceparent) = &origin.traceparent {
        annotations.insert(labels::TRACE_PARENT.to_owned(), traceparent.clone());
    }
    // The author's own value could be forged.
    match &origin.requester {
        Some(user) => annotations.insert(labels::REQUESTED_BY.to_owned(), user.clone()),
        None => annotations.remove(labels::REQUESTED_BY),
    };
}

fn write_strategy(strategy: &mut Value, pod: &Pod) {
    if matches!(strategy["failurePolicy"].as_str(), None | Some("")) {
        strategy["failurePolicy"] = json!("Fail");
    }
    let spec = pod.spec.as_ref();
    if let Some(grace) = spec.and_then(|spec| spec.termination_grace_period_seconds)
        && strategy["terminationGracePeriodSeconds"].is_null()
    {
        strategy["terminationGracePeriodSeconds"] = json!(grace);
    }
}

fn write_target(entry: &mut Value, target: &Target<'_>) {
    let (container, status) = (target.container, target.status);
    let lifecycle = container.lifecycle.as_ref();
    if let Some(hook) = lifecycle.and_then(|lifecycle| lifecycle.pre_stop.as_ref()) {
        entry["preStop"] = json!(hook);
        // Only these hooks can name a port.
        if hook.http_get.is_some() || hook.tcp_socket.is_some() {
            entry["ports"] = json!(container.ports.clone().unwrap_or_default());
        }
    }
    entry["statusContext"] =
        json!({ "containerID": status.container_id, "restartCount": status.restart_count });
}

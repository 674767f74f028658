//! The checks of a creation (OpenKruise's A5, and more).
//!
//! Owns the refusals; warnings are in `warnings.rs`, changes in `inject.rs`.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodSpec};
use kube_core::DynamicObject;
use model::{ids::RuntimeContainerId, labels};
use serde_json::Value;

use crate::{
    Facts, LONGEST_NAME, Origin, Verdict,
    inject::{self, Target},
    patch, status_annotations, warnings,
};

const READ_ONLY: &str = "is read-only: it is copied from the pod; leave it out";

/// The pod that has to be read before the creation of a CRR is reviewed.
///
/// The name is safe as a segment of a URL: `None` for a name that no pod can have.
pub fn needed_pod(object: &DynamicObject) -> Option<&str> {
    let name = object.data["spec"]["podName"].as_str();
    name.filter(|name| is_object_name(name))
}

/// Reviews the creation of a CRR: all faults, or the changes that complete it.
pub fn review_create(object: &DynamicObject, facts: &Facts, origin: &Origin) -> Verdict {
    let spec = &object.data["spec"];
    let mut verdict = Verdict::default();
    check_fields(&mut verdict, spec);
    let pod = check_pod(spec, facts);
    let pod = pod.map_err(|problem| verdict.bad("spec.podName", problem));
    let targets = check_containers(&mut verdict, spec, pod.ok());
    check_runtimes(&mut verdict, &targets);
    if let (true, Ok(pod)) = (verdict.is_allowed(), pod) {
        let mut completed = object.clone();
        verdict.warnings = warnings::of_creation(node_name(pod), facts);
        let removed = status_annotations::remove_from(&mut completed);
        verdict.warnings.extend(removed);
        inject::complete(&mut completed, pod, &targets, facts, origin);
        verdict.patch = patch(object, &completed);
    }
    verdict
}

/// Checks the fields that do not depend on the pod.
fn check_fields(verdict: &mut Verdict, spec: &Value) {
    if at(spec, "strategy").is_some_and(|strategy| !strategy.is_object()) {
        verdict.bad("spec.strategy", "must be an object");
    }
    if let Some(policy) = at(spec, "strategy.failurePolicy")
        && !matches!(policy.as_str(), Some("" | "Fail" | "Ignore"))
    {
        let problem = format!("is {policy}; allowed are Fail and Ignore");
        verdict.bad("spec.strategy.failurePolicy", problem);
    }
    for field in ["strategy.orderedRecreate", "strategy.forceRecreate"] {
        if let Some(value) = at(spec, field).filter(|value| !value.is_boolean()) {
            let problem = format!("is {value}; it must be true or false");
            verdict.bad(format!("spec.{field}"), problem);
        }
    }
    let i32_max = i64::from(i32::MAX);
    for (field, min, max) in [
        ("strategy.terminationGracePeriodSeconds", 0, i64::MAX),
        ("strategy.unreadyGracePeriodSeconds", 0, i64::MAX),
        ("strategy.minStartedSeconds", 0, i32_max),
        ("activeDeadlineSeconds", 3, i64::MAX),
        ("ttlSecondsAfterFinished", 0, i32_max),
    ] {
        let Some(value) = at(spec, field) else {
            continue;
        };
        let problem = match value.as_i64() {
            None => format!("is {value}; it must be a whole number"),
            Some(number) if number < min => format!("is {number}; it must be at least {min}"),
            Some(number) if number > max => format!("is {number}; it must be at most {max}"),
            Some(_) => continue,
        };
        verdict.bad(format!("spec.{field}"), problem);
    }
}

/// The pod, or the problem with it.
fn check_pod<'a>(spec: &Value, facts: &'a Facts) -> Result<&'a Pod, String> {
    let name = match at(spec, "podName") {
        None => "",
        Some(Value::String(name)) => name,
        Some(other) => return Err(format!("is {other}; it must be a string")),
    };
    if name.is_empty() {
        return Err("is empty; it must name a pod in the request's namespace".to_owned());
    }
    if !is_object_name(name) {
        let problem = "a pod's name is lower case letters, digits, '-' and '.'";
        return Err(format!("is {name:?}; {problem}"));
    }
    let Some(pod) = &facts.pod else {
        return Err(format!("no pod {name} is in this namespace"));
    };
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    let phase = phase.unwrap_or_default();
    let conditions = status.and_then(|status| status.conditions.as_deref());
    let mut conditions = conditions.unwrap_or_default().iter();
    let sidecars_ended = conditions.any(|condition| condition.type_ == labels::SIDECAR_TERMINATED);
    let node = node_name(pod);
    if pod.metadata.deletion_timestamp.is_some() && !sidecars_ended {
        Err(format!("pod {name} is being deleted"))
    } else if matches!(phase, "Succeeded" | "Failed") && !sidecars_ended {
        Err(format!("pod {name} has finished: its phase is {phase}"))
    } else if node.is_empty() {
        Err(format!("pod {name} is pending: it has no node yet"))
    } else if facts.node_exists == Some(false) {
        let problem = "which does not exist";
        Err(format!("pod {name} is on node {node}, {problem}"))
    } else {
        Ok(pod)
    }
}

/// The named containers of the pod that can be recreated.
fn check_containers<'a>(
    verdict: &mut Verdict,
    spec: &Value,
    pod: Option<&'a Pod>,
) -> Vec<Target<'a>> {
    let entries = match at(spec, "containers") {
        None => &[][..],
        Some(Value::Array(entries)) => entries,
        Some(other) => {
            verdict.bad("spec.containers", format!("is {other}; it must be a list"));
            return Vec::new();
        }
    };
    if entries.is_empty() {
        let problem = "is empty; it must name at least one container";
        verdict.bad("spec.containers", problem);
    }
    let mut seen = BTreeSet::new();
    let mut targets = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let path = format!("spec.containers[{index}]");
        for field in ["preStop", "ports", "statusContext"] {
            let is_given = at(entry, field).is_some_and(|value| *value != Value::Array(Vec::new()));
            if is_given {
                verdict.bad(format!("{path}.{field}"), READ_ONLY);
            }
        }
        let target = match at(entry, "name") {
            Some(Value::String(name)) if !name.is_empty() => {
                if !seen.insert(name) {
                    Err(format!("container {name} is named twice"))
                } else if let Some(pod) = pod {
                    find(pod, name)
                } else {
                    continue;
                }
            }
            None | Some(Value::String(_)) => {
                Err("is empty; it must name a container of the pod".to_owned())
            }
            Some(other) => Err(format!("is {other}; it must be a string")),
        };
        match target {
            Ok((container, status)) => targets.push(Target {
                index,
                container,
                status,
            }),
            Err(problem) => verdict.bad(format!("{path}.name"), problem),
        }
    }
    targets
}

/// A request goes to one node-executor, which uses one container runtime.
fn check_runtimes(verdict: &mut Verdict, targets: &[Target<'_>]) {
    let mut first: Option<(&str, RuntimeContainerId)> = None;
    for target in targets {
        let name = &target.container.name;
        let id = target.status.container_id.as_deref().unwrap_or_default();
        let problem = match (id.parse::<RuntimeContainerId>(), &first) {
            (Err(problem), _) => format!("container {name}: {problem}"),
            (Ok(id), None) => {
                first = Some((name, id));
                continue;
            }
            (Ok(id), Some((other, other_id))) if id.runtime != other_id.runtime => {
                let [runtime, other_runtime] = [&id.runtime, &other_id.runtime];
                format!(
                    "container {name} is run by {runtime} and container {other} by {other_runtime}; \
                     name containers of one runtime in one request"
                )
            }
            (Ok(_), Some(_)) => continue,
        };
        verdict.bad(format!("spec.containers[{}].name", target.index), problem);
    }
}

/// A container that can be recreated and its status, or the problem with it.
fn find<'a>(pod: &'a Pod, name: &str) -> Result<(&'a Container, &'a ContainerStatus), String> {
    let spec = pod.spec.as_ref().ok_or("the pod has no spec")?;
    let status = pod.status.as_ref();
    let is_named = |container: &&Container| container.name == name;
    let mut init_containers = spec.init_containers.iter().flatten();
    let mut ephemeral_containers = spec.ephemeral_containers.iter().flatten();
    let (container, statuses) = if let Some(container) = spec.containers.iter().find(is_named) {
        let statuses = status.and_then(|status| status.container_statuses.as_ref());
        (container, statuses)
    } else if let Some(container) = init_containers.find(is_named) {
        if !is_native_sidecar(container) {
            return Err(format!(
                "{name} is an init container; only containers and native sidecars \
                 (init containers with restartPolicy Always) can be recreated"
            ));
        }
        let statuses = status.and_then(|status| status.init_container_statuses.as_ref());
        (container, statuses)
    } else if ephemeral_containers.any(|container| container.name == name) {
        let problem = "is an ephemeral container, which no kubelet starts again";
        return Err(format!("{name} {problem}"));
    } else {
        let names = recreatable(spec).join(", ");
        return Err(format!("the pod has no container {name}; it has {names}"));
    };
    let mut statuses = statuses.into_iter().flatten();
    let status = statuses.find(|status| status.name == name);
    let has_id = |id: &String| !id.is_empty();
    let status = status.filter(|status| status.container_id.as_ref().is_some_and(has_id));
    let problem = || format!("container {name} has never started: there is nothing to recreate");
    Ok((container, status.ok_or_else(problem)?))
}

/// Names of the containers, then of the native sidecars.
fn recreatable(spec: &PodSpec) -> Vec<&str> {
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars = sidecars.filter(|container| is_native_sidecar(container));
    let all = spec.containers.iter().chain(sidecars);
    all.map(|container| &*container.name).collect()
}

/// True for an init container that keeps running (KEP-753).
fn is_native_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// The pod's node; empty if it has none.
pub(crate) fn node_name(pod: &Pod) -> &str {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.unwrap_or_default()
}

/// True for a DNS-1123 subdomain, the form of a pod's name.
///
/// The name becomes a segment of a URL: `web?resourceVersion=0` and `web/log` must not pass.
fn is_object_name(name: &str) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= LONGEST_NAME
        && name.split('.').all(|part| {
            let bytes = part.as_bytes();
            bytes.first().is_some_and(is_edge)
                && bytes.last().is_some_and(is_edge)
                && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
        })
}

/// A value by dotted path; null counts as absent.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let mut keys = path.split('.');
    let found = keys.try_fold(value, |value, key| value.get(key))?;
    (!found.is_null()).then_some(found)
}

#[cfg(test)]
mod tests;

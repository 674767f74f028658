//! The checks of a creation (OpenKruise's A5, and what it leaves out).
//!
//! Owns what is refused. What is warned of is `warnings.rs`, what is written in `inject.rs`.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodSpec};
use model::{ids::RuntimeContainerId, labels};
use serde_json::Value;

use crate::{
    Facts, Verdict,
    inject::{self, Target},
    read::{Faults, at, is_object_name},
    status_annotations,
    warnings::of_creation,
};

const READ_ONLY: &str = "is read-only: it is copied from the pod; leave it out";

pub(crate) fn review_create(object: &Value, facts: &Facts) -> Verdict {
    let mut faults = Faults::default();
    let spec = object.get("spec").unwrap_or(&Value::Null);
    check_strategy(&mut faults, spec);
    faults.check_number(spec, "activeDeadlineSeconds", 3, i64::MAX);
    faults.check_number(spec, "ttlSecondsAfterFinished", 0, i64::from(i32::MAX));
    let pod = check_pod(&mut faults, spec, facts);
    let targets = check_containers(&mut faults, spec, pod);
    check_runtimes(&mut faults, &targets);
    if !faults.0.is_empty() {
        return Verdict {
            faults: faults.0,
            ..Verdict::default()
        };
    }
    let Some(pod) = pod else {
        return Verdict::default();
    };
    let mut completed = object.clone();
    let mut warnings = of_creation(pod, facts);
    warnings.extend(status_annotations::take_away(&mut completed));
    inject::complete(&mut completed, pod, &targets, facts);
    Verdict {
        faults: Vec::new(),
        warnings,
        patch: json_patch::diff(object, &completed),
    }
}

fn check_strategy(faults: &mut Faults, spec: &Value) {
    if let Some(strategy) = at(spec, "strategy")
        && !strategy.is_object()
    {
        faults.bad("spec.strategy", "must be an object");
        return;
    }
    if let Some(policy) = at(spec, "strategy.failurePolicy")
        && !matches!(policy.as_str(), Some("" | "Fail" | "Ignore"))
    {
        let problem = format!("is {policy}; allowed are Fail and Ignore");
        faults.bad("spec.strategy.failurePolicy", problem);
    }
    faults.check_bool(spec, "strategy.orderedRecreate");
    faults.check_bool(spec, "strategy.forceRecreate");
    faults.check_number(spec, "strategy.terminationGracePeriodSeconds", 0, i64::MAX);
    faults.check_number(spec, "strategy.unreadyGracePeriodSeconds", 0, i64::MAX);
    faults.check_number(spec, "strategy.minStartedSeconds", 0, i64::from(i32::MAX));
}

/// The pod, if it is one whose containers can be recreated.
fn check_pod<'a>(faults: &mut Faults, spec: &Value, facts: &'a Facts) -> Option<&'a Pod> {
    let field = "spec.podName";
    let name = match spec.get("podName") {
        Some(Value::String(name)) if is_object_name(name) => name,
        Some(Value::String(name)) if !name.is_empty() => {
            let problem = "a pod's name is lower case letters, digits, '-' and '.'";
            faults.bad(field, format!("is {name:?}; {problem}"));
            return None;
        }
        Some(Value::String(_) | Value::Null) | None => {
            faults.bad(
                field,
                "is empty; it must name a pod in the request's namespace",
            );
            return None;
        }
        Some(other) => {
            faults.bad(field, format!("is {other}; it must be a string"));
            return None;
        }
    };
    let Some(pod) = &facts.pod else {
        faults.bad(field, format!("no pod {name} is in this namespace"));
        return None;
    };
    let status = pod.status.as_ref();
    let phase = status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default();
    let mut conditions = status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let sidecars_ended = conditions.any(|condition| condition.type_ == labels::SIDECAR_TERMINATED);
    let node = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.node_name.as_deref())
        .unwrap_or_default();
    if pod.metadata.deletion_timestamp.is_some() && !sidecars_ended {
        faults.bad(field, format!("pod {name} is being deleted"));
    } else if matches!(phase, "Succeeded" | "Failed") && !sidecars_ended {
        faults.bad(
            field,
            format!("pod {name} has finished: its phase is {phase}"),
        );
    } else if node.is_empty() {
        faults.bad(field, format!("pod {name} is pending: it has no node yet"));
    } else if facts.node_exists == Some(false) {
        faults.bad(
            field,
            format!("pod {name} is on node {node}, which does not exist"),
        );
    } else {
        return Some(pod);
    }
    None
}

/// The containers with their place in the list and the instances that run, as far as they can be recreated.
fn check_containers<'a>(
    faults: &mut Faults,
    spec: &Value,
    pod: Option<&'a Pod>,
) -> Vec<(usize, Target<'a>)> {
    let entries = match spec.get("containers") {
        Some(Value::Array(entries)) if !entries.is_empty() => entries,
        Some(Value::Array(_) | Value::Null) | None => {
            faults.bad(
                "spec.containers",
                "is empty; it must name at least one container",
            );
            return Vec::new();
        }
        Some(other) => {
            faults.bad("spec.containers", format!("is {other}; it must be a list"));
            return Vec::new();
        }
    };
    let mut seen = BTreeSet::new();
    let mut targets = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let path = format!("spec.containers[{index}]");
        for field in ["preStop", "ports", "statusContext"] {
            let is_given = at(entry, field).is_some_and(|value| *value != Value::Array(Vec::new()));
            if is_given {
                faults.bad(format!("{path}.{field}"), READ_ONLY);
            }
        }
        let field = format!("{path}.name");
        let name = at(entry, "name");
        if let Some(other) = name.filter(|name| !name.is_string()) {
            faults.bad(field, format!("is {other}; it must be a string"));
            continue;
        }
        match name.and_then(Value::as_str) {
            None | Some("") => faults.bad(field, "is empty; it must name a container of the pod"),
            Some(name) if !seen.insert(name) => {
                faults.bad(field, format!("container {name} is named twice"));
            }
            Some(name) => match pod.map(|pod| find(pod, name)) {
                Some(Ok(target)) => targets.push((index, target)),
                Some(Err(problem)) => faults.bad(field, problem),
                None => {} // The pod's fault is told already.
            },
        }
    }
    targets
}

/// One node-executor speaks to one runtime: what another one started cannot be meant in the same request.
fn check_runtimes(faults: &mut Faults, targets: &[(usize, Target<'_>)]) {
    let mut first: Option<(&str, RuntimeContainerId)> = None;
    for (index, target) in targets {
        let field = format!("spec.containers[{index}].name");
        let name = &target.container.name;
        let id = target.status.container_id.as_deref().unwrap_or_default();
        match (id.parse::<RuntimeContainerId>(), &first) {
            (Err(problem), _) => faults.bad(field, format!("container {name}: {problem}")),
            (Ok(id), None) => first = Some((name, id)),
            (Ok(id), Some((other, other_id))) if id.runtime != other_id.runtime => {
                let [mine, theirs] = [&id.runtime, &other_id.runtime];
                faults.bad(
                    field,
                    format!(
                        "container {name} is run by {mine} and container {other} by {theirs}; \
                         name containers of one runtime in one request"
                    ),
                );
            }
            (Ok(_), Some(_)) => {}
        }
    }
}

/// A container that can be recreated, or why it cannot.
fn find<'a>(pod: &'a Pod, name: &str) -> Result<Target<'a>, String> {
    let spec = pod.spec.as_ref().ok_or("the pod has no spec")?;
    let status = pod.status.as_ref();
    let named = |container: &&Container| container.name == name;
    let mut init_containers = spec.init_containers.iter().flatten();
    let (container, statuses) = if let Some(container) = spec.containers.iter().find(named) {
        (
            container,
            status.and_then(|status| status.container_statuses.as_ref()),
        )
    } else if let Some(container) = init_containers.find(named) {
        if !is_native_sidecar(container) {
            return Err(format!(
                "{name} is an init container; only containers and native sidecars \
                 (init containers with restartPolicy Always) can be recreated"
            ));
        }
        (
            container,
            status.and_then(|status| status.init_container_statuses.as_ref()),
        )
    } else {
        let mut ephemeral = spec.ephemeral_containers.iter().flatten();
        return Err(if ephemeral.any(|container| container.name == name) {
            format!("{name} is an ephemeral container, which no kubelet starts again")
        } else {
            format!("the pod has no container {name}; it has {}", names(spec))
        });
    };
    let started = |status: &&ContainerStatus| {
        status.name == name
            && status
                .container_id
                .as_ref()
                .is_some_and(|id| !id.is_empty())
    };
    match statuses.into_iter().flatten().find(started) {
        Some(status) => Ok(Target { container, status }),
        None => Err(format!(
            "container {name} has never started: there is nothing to recreate"
        )),
    }
}

/// What can be named: the containers, and the native sidecars after them.
fn names(spec: &PodSpec) -> String {
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars = sidecars.filter(|container| is_native_sidecar(container));
    let all = spec.containers.iter().chain(sidecars);
    all.map(|container| &*container.name)
        .collect::<Vec<_>>()
        .join(", ")
}

/// An init container that is kept running (KEP-753).
fn is_native_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

#[cfg(test)]
mod tests;

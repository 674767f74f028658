//! Launch barriers: the checks of a new pod's launch priorities, and the barriers that enforce them (document 002).
//!
//! The barrier-manager opens the barriers. The review may be repeated after other webhooks changed the pod, and a pod
//! may be a copy of one that ran: our barriers are replaced, each by one at the end of its container's environment.

mod priorities;

use k8s_openapi::{
    api::core::v1::{EnvVar, PodSpec},
    serde::Deserialize,
};
use kube_core::{DynamicObject, ResourceExt};
use model::{
    labels,
    launch::{BARRIER_SUFFIX, BARRIER_VARIABLE, PRIORITY_VARIABLE, Priority},
};
use serde_json::json;

use crate::{LONGEST_NAME, Verdict, list_in, patch};

/// The longest name that Kubernetes generates, with its random end.
const LONGEST_GENERATED_NAME: usize = 63;

/// Values for a new pod that no rule can know.
#[derive(Clone, Copy, Debug)]
pub struct LaunchFacts<'a> {
    /// End of the name of a pod that has only `generateName`: five random letters, as from Kubernetes.
    pub name_end: &'a str,
    /// W3C `traceparent` of the creation.
    pub traceparent: Option<&'a str>,
}

/// Reviews the creation of a pod.
pub fn review_launch(pod: &DynamicObject, facts: &LaunchFacts<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    // The kubelet runs a static pod from its own file and ignores changes to its mirror.
    if pod.annotations().contains_key(labels::CONFIG_MIRROR) {
        return verdict;
    }
    let spec = match PodSpec::deserialize(&pod.data["spec"]) {
        Ok(spec) => spec,
        Err(error) => {
            verdict.bad("spec", format!("cannot be read: {error}"));
            return verdict;
        }
    };
    // The API server refuses a pod without any name.
    let name = name_of(pod, facts.name_end).unwrap_or_default();
    let map = format!("{name}{BARRIER_SUFFIX}");
    let priorities = priorities::read(pod, &spec, &mut verdict);
    let is_ordered = !priorities.is_empty();
    check_barriers(&spec, is_ordered.then_some(&map), &mut verdict);
    if is_ordered && map.len() > LONGEST_NAME {
        let longest = LONGEST_NAME - BARRIER_SUFFIX.len();
        let problem = format!(
            "is too long for launch priorities: the ConfigMap {BARRIER_SUFFIX:?} is named after the pod; \
             at most {longest} characters are allowed"
        );
        verdict.bad("metadata.name", problem);
    }
    if verdict.is_allowed() && is_ordered && !name.is_empty() {
        let mut ordered = pod.clone();
        write_metadata(&mut ordered, name, facts);
        write_barriers(&mut ordered, &priorities, &map);
        verdict.patch = patch(pod, &ordered);
    }
    verdict
}

/// The pod's name or, as its ConfigMap is named after it, the one generated here.
fn name_of(pod: &DynamicObject, name_end: &str) -> Option<String> {
    let text = |field: &Option<String>| field.clone().filter(|text| !text.is_empty());
    text(&pod.metadata.name).or_else(|| {
        let start = text(&pod.metadata.generate_name)?;
        let start = start.chars().take(LONGEST_GENERATED_NAME - name_end.len());
        Some(start.chain(name_end.chars()).collect())
    })
}

/// A foreign barrier would block its container for ever, or not at all. `map` is the ConfigMap of an ordered pod.
fn check_barriers(spec: &PodSpec, map: Option<&String>, verdict: &mut Verdict) {
    let annotation = labels::LAUNCH_PRIORITY;
    let is_foreign = |variable: &EnvVar| {
        variable.name == BARRIER_VARIABLE && !map.is_some_and(|map| is_ours(variable, map))
    };
    for (index, container) in spec.containers.iter().enumerate() {
        if container.env.iter().flatten().any(is_foreign) {
            let problem = format!(
                "container {} sets {BARRIER_VARIABLE}, which Podwright writes by itself: leave it out, and give \
                 {PRIORITY_VARIABLE} or the annotation {annotation}",
                container.name,
            );
            verdict.bad(format!("spec.containers[{index}].env"), problem);
        }
    }
}

/// True for a barrier in our form, with any priority.
fn is_ours(barrier: &EnvVar, map: &str) -> bool {
    let source = barrier.value_from.as_ref();
    let source = source.and_then(|source| source.config_map_key_ref.as_ref());
    source.is_some_and(|source| {
        let is_optional = source.optional == Some(true);
        source.name == map && Priority::from_key(&source.key).is_some() && !is_optional
    })
}

fn write_metadata(pod: &mut DynamicObject, name: String, facts: &LaunchFacts<'_>) {
    pod.metadata.name = Some(name);
    let label = [labels::LAUNCH_BARRIER, labels::LAUNCH_BARRIER_TRUE].map(str::to_owned);
    pod.labels_mut().extend([label.into()]);
    let annotations = pod.annotations_mut();
    // The barrier-manager wrote these for the pod that this one is a copy of.
    annotations.remove(labels::LAUNCH_LEVEL);
    annotations.remove(labels::LAUNCH_COMPLETED);
    if let Some(traceparent) = facts.traceparent {
        annotations.insert(labels::TRACE_PARENT.to_owned(), traceparent.to_owned());
    }
}

fn write_barriers(pod: &mut DynamicObject, priorities: &[Priority], map: &str) {
    let containers = list_in(&mut pod.data["spec"]["containers"]);
    for (container, priority) in containers.iter_mut().zip(priorities) {
        let source = json!({ "name": map, "key": priority.key() });
        let variables = list_in(&mut container["env"]);
        variables.retain(|variable| variable["name"] != BARRIER_VARIABLE);
        variables.push(json!({
            "name": BARRIER_VARIABLE, "valueFrom": { "configMapKeyRef": source },
        }));
    }
}

#[cfg(test)]
mod tests;

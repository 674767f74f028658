//! What a pod may say of its containers' launch order, and the barriers that are written in for it (document 002).
//!
//! Owns every check of priorities and the writing-in. Which barrier opens when is the barrier-manager's. The rule may be
//! asked again after other webhooks have changed the pod, and a pod may be made from one that ran: barriers that are there
//! already and are ours are written anew, each last in its container.

mod priorities;

use model::{
    labels,
    launch::{BARRIER_SUFFIX, BARRIER_VARIABLE, PRIORITY_VARIABLE, Priority},
};
use serde_json::{Value, json};

use self::priorities::{Levels, levels};
use crate::{
    Verdict,
    gate::{list_in, object_in},
    read::Faults,
};

/// The longest name of an object (Kubernetes: a DNS-1123 subdomain).
const LONGEST_NAME: usize = 253;

/// The longest name that Kubernetes generates, random end included.
const LONGEST_GENERATED_NAME: usize = 63;

/// What is known around the creation of a pod.
#[derive(Clone, Copy, Debug)]
pub struct LaunchFacts<'a> {
    /// Ends the name of a pod that has only `generateName`; five random letters, as Kubernetes' own.
    pub name_end: &'a str,
    /// W3C `traceparent` of the creation.
    pub trace_parent: Option<&'a str>,
}

/// Reviews the creation of a pod. It is as its author sent it: anything.
pub fn review_launch(pod: &Value, facts: &LaunchFacts<'_>) -> Verdict {
    // The kubelet runs a static pod from its own file: nothing that is written into its mirror counts.
    let is_mirror = pod["metadata"]["annotations"][labels::CONFIG_MIRROR].is_string();
    if is_mirror || !pod["metadata"].is_object() {
        return Verdict::default();
    }
    let name = name_of(pod, facts.name_end);
    let mut faults = Faults::default();
    let Levels {
        priorities,
        warnings,
    } = levels(pod, &mut faults);
    let map = name.as_ref().map(|name| format!("{name}{BARRIER_SUFFIX}"));
    check_barriers(pod, map.as_deref(), !priorities.is_empty(), &mut faults);
    if !priorities.is_empty()
        && let Some(map) = &map
        && map.len() > LONGEST_NAME
    {
        let longest = LONGEST_NAME - BARRIER_SUFFIX.len();
        faults.bad(
            "metadata.name",
            format!(
                "is too long for launch priorities: the ConfigMap {BARRIER_SUFFIX:?} is named after the pod; \
                 at most {longest} characters are allowed"
            ),
        );
    }
    let mut verdict = Verdict {
        faults: faults.0,
        warnings,
        ..Verdict::default()
    };
    // A pod without any name is refused by the API server.
    if let (true, false, Some(name), Some(map)) =
        (verdict.is_allowed(), priorities.is_empty(), name, map)
    {
        let mut ordered = pod.clone();
        write(&mut ordered, &priorities, &name, &map, facts);
        verdict.patch = json_patch::diff(pod, &ordered);
    }
    verdict
}

/// The pod's name, or the one that it gets here: its ConfigMap is named after it.
fn name_of(pod: &Value, name_end: &str) -> Option<String> {
    let text = |field: &str| pod["metadata"][field].as_str().filter(|it| !it.is_empty());
    text("name").map(str::to_owned).or_else(|| {
        let begin = text("generateName")?;
        let room = LONGEST_GENERATED_NAME - name_end.len();
        let begin: String = begin.chars().take(room).collect();
        Some(begin + name_end)
    })
}

/// A barrier that somebody else wrote keeps its container waiting for ever, or lets it start at once.
fn check_barriers(pod: &Value, map: Option<&str>, is_ordered: bool, faults: &mut Faults) {
    for (index, container) in containers(pod).iter().enumerate() {
        let variables = container["env"].as_array().into_iter().flatten();
        let barriers = variables.filter(|variable| variable["name"] == BARRIER_VARIABLE);
        let foreign = barriers
            .filter(|barrier| !(is_ordered && is_ours(barrier, map)))
            .count();
        if foreign > 0 {
            faults.bad(
                format!("spec.containers[{index}].env"),
                format!(
                    "container {} sets {BARRIER_VARIABLE}, which Podwright writes by itself: leave it out, and give \
                     {PRIORITY_VARIABLE} or the annotation {}",
                    container["name"].as_str().unwrap_or_default(),
                    labels::LAUNCH_PRIORITY,
                ),
            );
        }
    }
}

/// Whether it is as we write it; the key is written anew anyway.
fn is_ours(barrier: &Value, map: Option<&str>) -> bool {
    let source = &barrier["valueFrom"]["configMapKeyRef"];
    let is_optional = source["optional"] == true;
    let has_key = source["key"]
        .as_str()
        .is_some_and(|key| Priority::from_key(key).is_some());
    map.is_some() && source["name"].as_str() == map && has_key && !is_optional
}

fn write(pod: &mut Value, priorities: &[Priority], name: &str, map: &str, facts: &LaunchFacts<'_>) {
    let metadata = &mut pod["metadata"];
    metadata["name"] = json!(name);
    if let Some(labels) = object_in(metadata, "labels") {
        let is = json!(labels::LAUNCH_BARRIER_TRUE);
        labels.insert(labels::LAUNCH_BARRIER.to_owned(), is);
    }
    if let Some(annotations) = object_in(metadata, "annotations") {
        // What an earlier pod's manager said, copied from it, is not said of this one.
        annotations.remove(labels::LAUNCH_LEVEL);
        annotations.remove(labels::LAUNCH_COMPLETED);
        if let Some(trace_parent) = facts.trace_parent {
            annotations.insert(labels::TRACE_PARENT.to_owned(), json!(trace_parent));
        }
    }
    let containers = pod["spec"]["containers"].as_array_mut();
    for (container, priority) in containers.into_iter().flatten().zip(priorities) {
        let Some(variables) = list_in(container, "env") else {
            continue;
        };
        let source = json!({ "name": map, "key": priority.key() });
        let barrier = json!({
            "name": BARRIER_VARIABLE, "valueFrom": { "configMapKeyRef": source },
        });
        variables.retain(|variable| variable["name"] != BARRIER_VARIABLE);
        variables.push(barrier);
    }
}

fn containers(pod: &Value) -> &[Value] {
    pod["spec"]["containers"]
        .as_array()
        .map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests;

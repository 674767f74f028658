//! The priorities of a pod's containers: from the annotation `Ordered`, or from their variables.

use model::{
    labels,
    launch::{PRIORITY_VARIABLE, Priority},
};
use serde_json::Value;

use super::containers;
use crate::read::Faults;

/// The lowest and the highest priority that a user may give (document 002).
const LOWEST: i64 = -2_147_483_647;
const HIGHEST: i64 = 2_147_483_647;

/// What a pod's author wants.
#[derive(Debug, Default)]
pub(super) struct Levels {
    /// One for each container, in their order; none where there is no order to keep.
    pub(super) priorities: Vec<Priority>,
    pub(super) warnings: Vec<String>,
}

/// Reads the priorities; what cannot be one is a fault, where it would be looked at.
pub(super) fn levels(pod: &Value, faults: &mut Faults) -> Levels {
    let annotation = pod["metadata"]["annotations"][labels::LAUNCH_PRIORITY].as_str();
    let is_by_place = annotation == Some(labels::LAUNCH_PRIORITY_ORDERED);
    let mut warnings = Vec::new();
    if let Some(word) = annotation
        && !is_by_place
    {
        warnings.push(format!(
            "metadata.annotations[{}]: {word:?} says nothing; {:?} starts the containers in their order",
            labels::LAUNCH_PRIORITY,
            labels::LAUNCH_PRIORITY_ORDERED,
        ));
    }
    warnings.extend(warn_of_init_containers(pod));
    let is_alone = containers(pod).len() == 1;
    let says_priority = containers(pod).iter().any(has_priority);
    if says_priority && is_by_place {
        warnings.push(format!(
            "{PRIORITY_VARIABLE} is not looked at: the annotation {} orders the containers",
            labels::LAUNCH_PRIORITY,
        ));
    } else if says_priority && is_alone {
        warnings.push(format!(
            "{PRIORITY_VARIABLE} is not looked at: there is one container only"
        ));
    }
    let priorities: Vec<_> = if is_alone {
        Vec::new()
    } else if is_by_place {
        let places = 0..=i32::MAX;
        let places = places.zip(containers(pod));
        places.map(|(place, _)| Priority::new(-place)).collect()
    } else {
        let given = read_variables(pod, faults).into_iter();
        given.map(|priority| priority.unwrap_or_default()).collect()
    };
    let has_levels = priorities.windows(2).any(|pair| pair[0] != pair[1]);
    Levels {
        priorities: if has_levels { priorities } else { Vec::new() },
        warnings,
    }
}

fn read_variables(pod: &Value, faults: &mut Faults) -> Vec<Option<Priority>> {
    let containers = containers(pod).iter().enumerate();
    containers
        .map(|(index, container)| {
            let variables = container["env"].as_array()?;
            let is_priority = |variable: &Value| variable["name"] == PRIORITY_VARIABLE;
            // Of several of one name the last counts (Kubernetes).
            let place = variables.iter().rposition(is_priority)?;
            let priority = read(&variables[place]);
            if priority.is_none() {
                let name = container["name"].as_str().unwrap_or_default();
                faults.bad(
                    format!("spec.containers[{index}].env[{place}]"),
                    format!(
                        "{PRIORITY_VARIABLE} of container {name} {}; allowed is a whole number from {LOWEST} to {HIGHEST}",
                        problem(&variables[place]),
                    ),
                );
            }
            priority
        })
        .collect()
}

fn has_priority(container: &Value) -> bool {
    let variables = container["env"].as_array();
    let mut variables = variables.into_iter().flatten();
    variables.any(|variable| variable["name"] == PRIORITY_VARIABLE)
}

fn read(variable: &Value) -> Option<Priority> {
    if !variable["valueFrom"].is_null() {
        return None;
    }
    let number: i64 = variable["value"].as_str()?.parse().ok()?;
    let number = i32::try_from(number).ok()?;
    (i64::from(number) >= LOWEST).then_some(Priority::new(number))
}

fn problem(variable: &Value) -> String {
    if !variable["valueFrom"].is_null() {
        return "is taken from elsewhere (valueFrom), which is known only when the container starts".to_owned();
    }
    match variable["value"].as_str() {
        Some(text) => format!("is {text:?}"),
        None => "has no value".to_owned(),
    }
}

/// The kubelet starts init containers one after the other, before all others.
fn warn_of_init_containers(pod: &Value) -> Option<String> {
    let init = pod["spec"]["initContainers"].as_array()?;
    let names: Vec<_> = init
        .iter()
        .filter(|container| has_priority(container))
        .filter_map(|container| container["name"].as_str())
        .collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("{PRIORITY_VARIABLE} does nothing in init containers, which start first and in order: {names}")
    })
}

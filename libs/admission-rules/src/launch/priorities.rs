//! The priorities of a pod's containers, from the annotation `Ordered` or from their variables.

use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec};
use kube_core::{DynamicObject, ResourceExt};
use model::{
    labels,
    launch::{PRIORITY_VARIABLE, Priority},
};

use crate::Verdict;

/// The lowest and the highest priority that a user may give (document 002).
const LOWEST: i64 = -2_147_483_647;
const HIGHEST: i64 = 2_147_483_647;

/// One priority for each container; none if all are equal. Invalid priorities that count are faults.
pub(super) fn read(pod: &DynamicObject, spec: &PodSpec, verdict: &mut Verdict) -> Vec<Priority> {
    let containers = &spec.containers;
    let key = labels::LAUNCH_PRIORITY;
    let annotation = pod.annotations().get(key).map(String::as_str);
    let is_by_place = annotation == Some(labels::LAUNCH_PRIORITY_ORDERED);
    if let Some(word) = annotation.filter(|_| !is_by_place) {
        let ordered = labels::LAUNCH_PRIORITY_ORDERED;
        verdict.warnings.push(format!(
            "metadata.annotations[{key}]: {word:?} says nothing; {ordered:?} starts the containers in their order"
        ));
    }
    verdict.warnings.extend(warning_of_init_containers(spec));
    let is_alone = containers.len() == 1;
    if containers.iter().any(has_priority) {
        let reason = match (is_by_place, is_alone) {
            (true, _) => Some(format!("the annotation {key} orders the containers")),
            (false, true) => Some("there is one container only".to_owned()),
            (false, false) => None,
        };
        let warning = |reason| format!("{PRIORITY_VARIABLE} is not looked at: {reason}");
        verdict.warnings.extend(reason.map(warning));
    }
    let priorities: Vec<_> = if is_alone {
        Vec::new()
    } else if is_by_place {
        let places = (0..=i32::MAX).zip(containers);
        places.map(|(place, _)| Priority::new(-place)).collect()
    } else {
        let containers = containers.iter().enumerate();
        containers
            .map(|(index, container)| read_variable(index, container, verdict).unwrap_or_default())
            .collect()
    };
    let has_levels = priorities.windows(2).any(|pair| pair[0] != pair[1]);
    if has_levels { priorities } else { Vec::new() }
}

fn read_variable(index: usize, container: &Container, verdict: &mut Verdict) -> Option<Priority> {
    let variables = container.env.as_ref()?;
    // Of several variables of one name the last counts (Kubernetes).
    let place = variables.iter().rposition(is_priority)?;
    let priority = parse(&variables[place]).map_err(|problem| {
        let problem = format!(
            "{PRIORITY_VARIABLE} of container {} {problem}; allowed is a whole number from {LOWEST} to {HIGHEST}",
            container.name
        );
        verdict.bad(format!("spec.containers[{index}].env[{place}]"), problem);
    });
    priority.ok()
}

/// The variable's priority, or the problem with it.
fn parse(variable: &EnvVar) -> Result<Priority, String> {
    if variable.value_from.is_some() {
        let problem =
            "is taken from elsewhere (valueFrom), which is known only when the container starts";
        return Err(problem.to_owned());
    }
    let text = variable.value.as_ref().ok_or("has no value")?;
    let number = text.parse().ok();
    let number = number.filter(|number| i64::from(*number) >= LOWEST);
    let priority = number.map(Priority::new);
    priority.ok_or_else(|| format!("is {text:?}"))
}

fn is_priority(variable: &EnvVar) -> bool {
    variable.name == PRIORITY_VARIABLE
}

fn has_priority(container: &Container) -> bool {
    container.env.iter().flatten().any(is_priority)
}

/// The kubelet starts init containers one by one, before all others.
fn warning_of_init_containers(spec: &PodSpec) -> Option<String> {
    let init_containers = spec.init_containers.iter().flatten();
    let init_containers = init_containers.filter(|container| has_priority(container));
    let names: Vec<_> = init_containers.map(|container| &*container.name).collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("{PRIORITY_VARIABLE} does nothing in init containers, which start first and in order: {names}")
    })
}

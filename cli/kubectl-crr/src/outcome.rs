//! Status of a request in short: its phase, its outcome, and lines about it.

use k8s_api::crd::{ContainerRecreateRequest as Crr, ContainerRecreateRequestState};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Outcome {
    Succeeded,
    Failed,
}

/// The outcome; `None` before the end.
pub(crate) fn outcome(request: &Crr) -> Option<Outcome> {
    if !matches!(phase(request), "Completed" | "Succeeded" | "Failed") {
        return None;
    }
    // OpenKruise's own controller writes no conditions: then every container must have come back.
    let states = states(request);
    let are_all_back = states.len() == request.spec.containers.len()
        && states.iter().all(|state| state.phase == "Succeeded");
    let has_succeeded = succeeded(request).map_or(are_all_back, |it| it.status == "True");
    Some(match has_succeeded {
        true => Outcome::Succeeded,
        false => Outcome::Failed,
    })
}

/// The phase; `New` before the first status.
pub(crate) fn phase(request: &Crr) -> &str {
    let phase = request.status.as_ref().map(|status| status.phase.as_str());
    phase.filter(|phase| !phase.is_empty()).unwrap_or("New")
}

pub(crate) fn states(request: &Crr) -> &[ContainerRecreateRequestState] {
    let status = request.status.as_ref();
    status.map_or(&[], |status| &status.container_recreate_states)
}

pub(crate) fn conditions(request: &Crr) -> &[Condition] {
    let status = request.status.as_ref();
    status.map_or(&[], |status| &status.conditions)
}

fn succeeded(request: &Crr) -> Option<&Condition> {
    let mut conditions = conditions(request).iter();
    conditions.find(|condition| condition.type_ == "Succeeded")
}

pub(crate) fn message(request: &Crr) -> Option<&String> {
    request.status.as_ref()?.message.as_ref()
}

/// Why the request ended so, or waits.
pub(crate) fn reason(request: &Crr) -> Option<&String> {
    let succeeded = succeeded(request).map(|condition| &condition.message);
    let reason = succeeded.or(message(request));
    reason.filter(|reason| !reason.is_empty())
}

/// ` (WHY)`; empty without a reason.
pub(crate) fn because(why: Option<&String>) -> String {
    let why = why.filter(|why| !why.is_empty());
    why.map(|why| format!(" ({why})")).unwrap_or_default()
}

/// One line per container, and last one about the request; none before the first status.
pub(crate) fn lines(request: &Crr) -> Vec<String> {
    let pod = &request.spec.pod_name;
    if request.status.is_none() {
        return Vec::new();
    }
    let containers = states(request).iter().map(|state| {
        let why = because(state.message.as_ref());
        format!("{pod}/{}: {}{why}", state.name, state.phase)
    });
    let phase = match outcome(request) {
        Some(Outcome::Succeeded) => "succeeded",
        Some(Outcome::Failed) => "FAILED",
        None => phase(request),
    };
    let last = format!("{pod}: {phase}{}", because(reason(request)));
    containers.chain([last]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn crr(status: Value) -> Crr {
        let spec = json!({ "podName": "web", "containers": [{ "name": "app" }] });
        let crr = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
            "metadata": { "name": "x" }, "spec": spec, "status": status,
        });
        serde_json::from_value(crr).unwrap()
    }

    #[test]
    fn completed_is_not_success() {
        let state = |phase| json!([{ "name": "app", "phase": phase, "message": "" }]);
        let said = |status| {
            let time = "2026-01-01T00:00:00Z";
            json!([{ "type": "Succeeded", "status": status, "reason": "R", "message": "m", "lastTransitionTime": time }])
        };
        let cases = [
            (Value::Null, None),
            (json!({ "phase": "Recreating" }), None),
            (json!({ "phase": "Completed" }), Some(Outcome::Failed)),
            (
                json!({ "phase": "Completed", "containerRecreateStates": state("Failed") }),
                Some(Outcome::Failed),
            ),
            (
                json!({ "phase": "Completed", "containerRecreateStates": state("Succeeded") }),
                Some(Outcome::Succeeded),
            ),
            (
                json!({ "phase": "Completed", "conditions": said("True") }),
                Some(Outcome::Succeeded),
            ),
            (
                json!({ "phase": "Completed", "containerRecreateStates": state("Succeeded"), "conditions": said("False") }),
                Some(Outcome::Failed),
            ),
        ];
        for (status, meant) in cases {
            assert_eq!(outcome(&crr(status.clone())), meant, "{status}");
        }
        let failed = crr(json!({
            "phase": "Completed", "containerRecreateStates": state("Failed"), "conditions": said("False"),
        }));
        assert_eq!(lines(&failed), ["web/app: Failed", "web: FAILED (m)"]);
    }
}

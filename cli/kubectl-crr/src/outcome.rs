//! What a request's status says, in one word or one line.

use k8s_api::crd::ContainerRecreateRequest;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Succeeded,
    Failed,
}

/// How it ended; nothing while it has not.
pub(crate) fn outcome(request: &ContainerRecreateRequest) -> Option<Outcome> {
    let status = request.status.as_ref()?;
    if !matches!(status.phase.as_str(), "Completed" | "Succeeded" | "Failed") {
        return None;
    }
    // OpenKruise's own controller writes no conditions: then every container has to have come back.
    let states = &status.container_recreate_states;
    let all_are_back = states.len() == request.spec.containers.len()
        && states.iter().all(|state| state.phase == "Succeeded");
    let condition = status.conditions.iter().find(|it| it.type_ == "Succeeded");
    let is_well = condition.map_or(all_are_back, |condition| condition.status == "True");
    Some(if is_well {
        Outcome::Succeeded
    } else {
        Outcome::Failed
    })
}

/// The phase; one without a status has not been looked at.
pub(crate) fn phase(request: &ContainerRecreateRequest) -> &str {
    let phase = request.status.as_ref().map(|status| status.phase.as_str());
    phase.filter(|phase| !phase.is_empty()).unwrap_or("New")
}

/// One line for each container and one for the request, as they stand.
pub(crate) fn lines(request: &ContainerRecreateRequest) -> Vec<String> {
    let pod = &request.spec.pod_name;
    let Some(status) = &request.status else {
        return Vec::new();
    };
    let because = |why: Option<&String>| match why {
        Some(why) if !why.is_empty() => format!(" ({why})"),
        Some(_) | None => String::new(),
    };
    let states = status.container_recreate_states.iter();
    let mut lines: Vec<_> = states
        .map(|state| {
            let why = because(state.message.as_ref());
            format!("{pod}/{}: {}{why}", state.name, state.phase)
        })
        .collect();
    let condition = status.conditions.iter().find(|it| it.type_ == "Succeeded");
    let why = condition.map(|it| &it.message).or(status.message.as_ref());
    lines.push(match outcome(request) {
        Some(Outcome::Succeeded) => format!("{pod}: succeeded{}", because(why)),
        Some(Outcome::Failed) => format!("{pod}: FAILED{}", because(why)),
        None => format!("{pod}: {}{}", phase(request), because(why)),
    });
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn crr(status: Value) -> ContainerRecreateRequest {
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

//! The ordered launch of a pod: its levels, and what the next one waits for.
//!
//! `barrier-rules` decides, as in the barrier-manager.

use std::collections::BTreeSet;

use barrier_rules::{MapView, Stage, Waiting, blocked, stage};
use k8s_api::convert::launch_pod_from_object;
use k8s_openapi::api::core::v1::Pod;
use model::launch::{LaunchPod, Priority};
use serde::Serialize;

use super::{Barriers, PodEvidence};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LaunchStory {
    completed: bool,
    /// Highest first.
    levels: Vec<LevelStory>,
    /// Why the launch cannot go on.
    problem: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct LevelStory {
    /// Key in the ConfigMap.
    level: String,
    /// `up`, `waiting` (for `waitingFor`), `open` (its containers may start) or `closed`.
    state: &'static str,
    containers: Vec<String>,
    waiting_for: Vec<WaitingFor>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct WaitingFor {
    container: String,
    why: String,
}

/// The launch, if the pod has barriers.
pub(super) fn launch(evidence: &PodEvidence) -> Option<LaunchStory> {
    let pod = match launch_pod_from_object(&evidence.pod) {
        Ok(pod) if pod.containers.is_empty() => return None,
        Ok(pod) => pod,
        Err(_) if !has_barrier(&evidence.pod) => return None,
        Err(error) => {
            let (problem, story) = (Some(error.to_string()), LaunchStory::default());
            return Some(LaunchStory { problem, ..story });
        }
    };
    let map = match &evidence.barriers {
        Barriers::Present(map) => MapView::Present(map),
        Barriers::Absent => MapView::Absent,
        Barriers::Unknown => MapView::Unknown,
    };
    let stage = stage(&pod, map);
    let problem = match (&stage, map) {
        (Stage::Blocked, _) => Some(blocked(&pod).message),
        (Stage::Waiting { .. }, MapView::Absent) => {
            Some("its ConfigMap is not there: does a barrier-manager lead?".to_owned())
        }
        (Stage::Waiting { .. } | Stage::Launched | Stage::Over, _) => None,
    };
    Some(LaunchStory {
        completed: pod.is_completed,
        levels: levels(&pod, &stage, map),
        problem,
    })
}

fn has_barrier(pod: &Pod) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut variables = containers.flat_map(|container| container.env.iter().flatten());
    variables.any(|variable| variable.name == model::launch::BARRIER_VARIABLE)
}

fn levels(pod: &LaunchPod, stage: &Stage, map: MapView<'_>) -> Vec<LevelStory> {
    let levels: BTreeSet<_> = pod.containers.iter().map(|it| it.priority).collect();
    let waiting_for = |it: &Waiting| WaitingFor {
        container: it.container.to_string(),
        why: it.why.clone(),
    };
    let story = |level: Priority| {
        let of_level = pod.containers.iter().filter(|it| it.priority == level);
        let is_open = matches!(map, MapView::Present(map) if map.keys.contains(&level));
        let not_begun = if is_open { "open" } else { "closed" };
        let (state, waiting) = match stage {
            Stage::Waiting {
                level: at,
                containers,
            } if *at == level => ("waiting", containers.as_slice()),
            Stage::Waiting { level: at, .. } if level < *at => (not_begun, &[][..]),
            Stage::Waiting { .. } | Stage::Launched => ("up", &[][..]),
            Stage::Blocked | Stage::Over => (not_begun, &[][..]),
        };
        LevelStory {
            level: level.key(),
            state,
            containers: of_level.map(|it| it.name.to_string()).collect(),
            waiting_for: waiting.iter().map(waiting_for).collect(),
        }
    };
    levels.into_iter().rev().map(story).collect()
}

// === impl LaunchStory ===

impl LaunchStory {
    pub(super) fn lines(&self) -> Vec<String> {
        let completed = if self.completed { " completed" } else { "" };
        let mut lines = vec![format!("Launch:{completed}")];
        lines.extend(self.problem.iter().map(|problem| format!("  {problem}")));
        for level in &self.levels {
            let containers = level.containers.join(", ");
            lines.push(format!("  {}: {} ({containers})", level.level, level.state));
            let waiting = level.waiting_for.iter();
            lines.extend(waiting.map(|it| format!("    {}: {}", it.container, it.why)));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use k8s_api::convert::barrier_map_from_object;
    use serde_json::{Value, json};

    use super::*;

    fn container(name: &str, key: &str) -> Value {
        let source = json!({ "configMapKeyRef": { "name": "web-barrier", "key": key } });
        json!({ "name": name, "env": [{ "name": "KRUISE_CONTAINER_BARRIER", "valueFrom": source }] })
    }

    fn status(name: &str, ready: bool, state: Value) -> Value {
        json!({
            "name": name, "ready": ready, "state": state, "restartCount": 0, "image": "i", "imageID": "i",
        })
    }

    fn seen(statuses: Value, barriers: Barriers) -> PodEvidence {
        let containers = [container("proxy", "p_1"), container("main", "p_0")];
        let pod = json!({
            "metadata": { "name": "web", "namespace": "shop", "uid": "u" },
            "spec": { "nodeName": "n", "containers": containers },
            "status": { "phase": "Pending", "containerStatuses": statuses },
        });
        PodEvidence {
            pod: serde_json::from_value(pod).unwrap(),
            requests: Vec::new(),
            events: Vec::new(),
            barriers,
        }
    }

    fn map(keys: Value, owners: Value) -> Barriers {
        let map = json!({ "metadata": { "uid": "m", "ownerReferences": owners }, "data": keys });
        Barriers::Present(barrier_map_from_object(
            &serde_json::from_value(map).unwrap(),
        ))
    }

    fn lines(seen: &PodEvidence) -> Vec<String> {
        launch(seen).map_or_else(Vec::new, |launch| launch.lines())
    }

    #[test]
    fn a_launch_tells_its_levels_and_what_they_wait_for() {
        let owner = json!([{ "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u" }]);
        let pull =
            json!({ "waiting": { "reason": "ImagePullBackOff", "message": "no such image" } });
        let none = json!({ "waiting": { "reason": "CreateContainerConfigError" } });
        let statuses = json!([status("proxy", false, pull), status("main", false, none)]);
        let waiting = seen(statuses, map(json!({ "p_1": "true" }), owner.clone()));
        assert_eq!(
            lines(&waiting),
            [
                "Launch:",
                "  p_1: waiting (proxy)",
                "    proxy: ImagePullBackOff: no such image",
                "  p_0: closed (main)",
            ]
        );
        let up = |name| status(name, true, json!({ "running": {} }));
        let keys = json!({ "p_1": "true", "p_0": "true" });
        let done = seen(json!([up("proxy"), up("main")]), map(keys, owner));
        assert_eq!(
            lines(&done),
            ["Launch:", "  p_1: up (proxy)", "  p_0: up (main)"]
        );
    }

    #[test]
    fn what_keeps_a_launch_from_going_on_is_told() {
        let told = |barriers| lines(&seen(json!([]), barriers))[1].clone();
        let foreign = map(json!({}), json!([]));
        assert!(told(foreign).contains("ConfigMap web-barrier is no launch barrier"));
        assert!(told(Barriers::Absent).contains("is not there"));
        assert!(told(Barriers::Unknown).starts_with("  p_1: waiting"));
    }

    #[test]
    fn a_pod_without_barriers_has_no_launch() {
        let mut plain = seen(json!([]), Barriers::Absent);
        for container in &mut plain.pod.spec.as_mut().unwrap().containers {
            container.env = None;
        }
        assert_eq!(launch(&plain), None);
    }
}

//! Which new pods get the readiness gate `KruisePodReady`.
//!
//! Owns the rule and the change; the crr-scheduler opens and shuts the gate. Every gated pod has our label, so that
//! one watch by label finds them all. A pod that has both stays as it is: the rule may be applied any number of
//! times.

use json_patch::Patch;
use k8s_openapi::{api::core::v1::PodSpec, serde::Deserialize};
use kube_core::{DynamicObject, ResourceExt};
use model::labels;
use serde_json::json;

use crate::{list_in, patch};

/// Pods that get the gate without asking for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateScope {
    /// Those whose controller is OpenKruise's.
    Kruise,
    /// All but static ones.
    EveryPod,
}

/// The patch that gates a pod; empty if it gets no gate or has it already.
pub fn gate_pod(pod: &DynamicObject, scope: GateScope) -> Patch {
    let Ok(spec) = PodSpec::deserialize(&pod.data["spec"]) else {
        return Patch::default();
    };
    let mut gates = spec.readiness_gates.iter().flatten();
    let has_gate = gates.any(|gate| gate.condition_type == labels::KRUISE_POD_READY);
    // The kubelet creates a static pod's mirror and judges by its own file, which has no gate.
    let is_mirror = pod.annotations().contains_key(labels::CONFIG_MIRROR);
    if is_mirror || !(has_gate || is_wanted(pod, scope)) {
        return Patch::default();
    }
    let mut gated = pod.clone();
    if !has_gate {
        let gate = json!({ "conditionType": labels::KRUISE_POD_READY });
        list_in(&mut gated.data["spec"]["readinessGates"]).push(gate);
    }
    let label = [labels::READINESS_GATE, labels::READINESS_GATE_TRUE].map(str::to_owned);
    gated.labels_mut().extend([label.into()]);
    patch(pod, &gated)
}

fn is_wanted(pod: &DynamicObject, scope: GateScope) -> bool {
    let is_in_scope = match scope {
        GateScope::EveryPod => true,
        GateScope::Kruise => pod.owner_references().iter().any(|owner| {
            let group = owner.api_version.split_once('/').map(|(group, _)| group);
            owner.controller == Some(true) && group == Some(labels::KRUISE_GROUP)
        }),
    };
    let label = pod.labels().get(labels::READINESS_GATE);
    is_in_scope || label.is_some_and(|value| value == labels::READINESS_GATE_TRUE)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const GATED: &str = "podwright.dev/readiness-gate";

    fn pod(metadata: Value, gates: &[&str]) -> Value {
        let gates: Vec<_> = gates
            .iter()
            .map(|gate| json!({ "conditionType": gate }))
            .collect();
        let mut pod = json!({"metadata": metadata, "spec": {"containers": []}});
        if !gates.is_empty() {
            pod["spec"]["readinessGates"] = json!(gates);
        }
        pod
    }

    fn patch_of(pod: &Value, scope: GateScope) -> Patch {
        gate_pod(&serde_json::from_value(pod.clone()).unwrap(), scope)
    }

    fn gated(pod: &Value, scope: GateScope) -> Value {
        let mut gated = pod.clone();
        json_patch::patch(&mut gated, &patch_of(pod, scope)).unwrap();
        gated
    }

    /// The gates of the pod then, and whether it bears our label; asked again, nothing more happens.
    fn check(pod: &Value, scope: GateScope, gates: &[&str], label: bool) {
        let once = gated(pod, scope);
        let found = once["spec"]["readinessGates"].as_array();
        let found: Vec<_> = found
            .into_iter()
            .flatten()
            .map(|gate| gate["conditionType"].as_str().unwrap())
            .collect();
        assert_eq!(found, gates, "{pod}");
        let labels = &once["metadata"]["labels"];
        assert_eq!(labels[GATED] == "true", label, "{pod}");
        assert_eq!(patch_of(&once, scope), Patch::default(), "{pod}");
    }

    fn owned(version: &str, controller: bool) -> Value {
        let owner = json!({
            "apiVersion": version, "kind": "CloneSet", "name": "a", "uid": "u",
            "controller": controller,
        });
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Node"}, owner]})
    }

    #[test]
    fn pods_of_kruise_and_those_that_ask_get_the_gate() {
        let ours = ["KruisePodReady"];
        let cases: [(Value, &[&str], bool); 10] = [
            (json!({"name": "plain"}), &[], false),
            (owned("apps.kruise.io/v1alpha1", true), &ours, true),
            (owned("apps.kruise.io/v1beta1", true), &ours, true),
            (owned("apps.kruise.io/v1beta1", false), &[], false),
            (owned("apps/v1", true), &[], false),
            (owned("apps.kruise.io.example/v1", true), &[], false),
            (owned("apps.kruise.io", true), &[], false),
            (json!({"labels": {GATED: "true", "mine": "a"}}), &ours, true),
            (json!({"labels": {GATED: "false"}}), &[], false),
            (json!({"labels": {"mine": "a"}}), &[], false),
        ];
        for (metadata, gates, label) in cases {
            check(&pod(metadata, &[]), GateScope::Kruise, gates, label);
        }
    }

    #[test]
    fn other_gates_stay_and_ours_is_there_once() {
        let asks = json!({"labels": {GATED: "true"}});
        let scope = GateScope::Kruise;
        check(
            &pod(asks.clone(), &["other"]),
            scope,
            &["other", "KruisePodReady"],
            true,
        );
        check(
            &pod(asks, &["KruisePodReady", "other"]),
            scope,
            &["KruisePodReady", "other"],
            true,
        );
        check(&pod(json!({}), &["other"]), scope, &["other"], false);
        // Its author wrote the gate: it has to be opened, so it has to be found.
        check(
            &pod(json!({}), &["KruisePodReady"]),
            scope,
            &["KruisePodReady"],
            true,
        );
    }

    #[test]
    fn every_pod_but_a_static_one() {
        let scope = GateScope::EveryPod;
        check(
            &pod(json!({"name": "plain"}), &[]),
            scope,
            &["KruisePodReady"],
            true,
        );
        let mirror = json!({
            "annotations": {"kubernetes.io/config.mirror": "hash"}, "labels": {"mine": "a"},
        });
        check(&pod(mirror, &[]), scope, &[], false);
    }

    #[test]
    fn anything_is_answered() {
        let asks = json!({"labels": {GATED: "true"}});
        for spec in [
            json!(null),
            json!([]),
            json!(1),
            json!({"readinessGates": 5}),
            json!({"readinessGates": [5]}),
        ] {
            for scope in [GateScope::Kruise, GateScope::EveryPod] {
                let odd = json!({"spec": spec, "metadata": asks});
                assert_eq!(patch_of(&odd, scope), Patch::default(), "{odd}");
                assert_eq!(
                    patch_of(&json!({"metadata": asks}), scope),
                    Patch::default()
                );
            }
        }
    }
}

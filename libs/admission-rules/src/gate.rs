//! Which pods get the readiness gate `KruisePodReady` when they are created.
//!
//! Owns the rule and the writing-in; who opens and shuts the gate is the scheduler's. Every gated pod bears our
//! label, so that one watch by label finds them all. A pod that has both already is left as it is: the rule may
//! be asked any number of times.

use json_patch::Patch;
use model::labels;
use serde_json::{Value, json};

/// Pods that get the gate without asking for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateScope {
    /// Those whose controller is OpenKruise's.
    Kruise,
    /// All but static ones.
    EveryPod,
}

/// What makes a gated pod of a pod that should be one. The pod is as its author sent it: anything.
pub fn gate_pod(pod: &Value, scope: GateScope) -> Patch {
    if !is_wanted(pod, scope) {
        return Patch::default();
    }
    let mut gated = pod.clone();
    if !has_gate(pod)
        && let Some(gates) = list_in(&mut gated["spec"], "readinessGates")
    {
        gates.push(json!({ "conditionType": labels::KRUISE_POD_READY }));
    }
    // A pod whose gates are no list is refused by the API server, not by us.
    if has_gate(&gated)
        && let Some(labels) = object_in(&mut gated["metadata"], "labels")
    {
        let is = json!(labels::READINESS_GATE_TRUE);
        labels.insert(labels::READINESS_GATE.to_owned(), is);
    }
    json_patch::diff(pod, &gated)
}

fn is_wanted(pod: &Value, scope: GateScope) -> bool {
    if !pod["spec"].is_object() || !pod["metadata"].is_object() {
        return false;
    }
    // The kubelet makes a static pod's mirror and judges by its own file, which has no gate.
    let is_mirror = pod["metadata"]["annotations"][labels::CONFIG_MIRROR].is_string();
    let asks = pod["metadata"]["labels"][labels::READINESS_GATE] == labels::READINESS_GATE_TRUE;
    let is_for_all = match scope {
        GateScope::EveryPod => true,
        GateScope::Kruise => false,
    };
    !is_mirror && (has_gate(pod) || asks || is_for_all || is_controlled_by_kruise(pod))
}

fn has_gate(pod: &Value) -> bool {
    let gates = pod["spec"]["readinessGates"].as_array();
    let mut gates = gates.into_iter().flatten();
    gates.any(|gate| gate["conditionType"] == labels::KRUISE_POD_READY)
}

fn is_controlled_by_kruise(pod: &Value) -> bool {
    let owners = pod["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    owners.any(|owner| {
        let version = owner["apiVersion"].as_str().and_then(|v| v.split_once('/'));
        owner["controller"] == true
            && version.is_some_and(|(group, _)| group == labels::KRUISE_GROUP)
    })
}

/// A field that is a list or is made one; `None` when it is something else.
pub(crate) fn list_in<'a>(parent: &'a mut Value, field: &str) -> Option<&'a mut Vec<Value>> {
    let slot = &mut parent[field];
    if slot.is_null() {
        *slot = json!([]);
    }
    slot.as_array_mut()
}

pub(crate) fn object_in<'a>(
    parent: &'a mut Value,
    field: &str,
) -> Option<&'a mut serde_json::Map<String, Value>> {
    let slot = &mut parent[field];
    if slot.is_null() {
        *slot = json!({});
    }
    slot.as_object_mut()
}

#[cfg(test)]
mod tests {
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

    fn gated(pod: &Value, scope: GateScope) -> Value {
        let mut gated = pod.clone();
        json_patch::patch(&mut gated, &gate_pod(pod, scope)).unwrap();
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
        assert_eq!(gate_pod(&once, scope), Patch::default(), "{pod}");
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
        for odd in [
            json!(null),
            json!([]),
            json!({"spec": 1, "metadata": []}),
            json!({"spec": {"readinessGates": 5}, "metadata": asks}),
            json!({"spec": {"readinessGates": [5]}, "metadata": {"labels": 5}}),
            json!({"spec": {}, "metadata": {"ownerReferences": {"controller": true}}}),
        ] {
            for scope in [GateScope::Kruise, GateScope::EveryPod] {
                let _patch = gate_pod(&odd, scope);
            }
        }
    }
}

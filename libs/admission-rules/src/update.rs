//! The checks of an update: the spec and what admission wrote are immutable.
//!
//! Status updates are not reviewed; other labels and annotations may change.

use kube_core::{DynamicObject, ResourceExt};
use model::labels;
use serde_json::{Value, json};

use crate::{Verdict, patch, status_annotations};

/// Reviews an update of a CRR.
pub fn review_update(object: &DynamicObject, old: &DynamicObject) -> Verdict {
    let mut verdict = Verdict::default();
    let mut completed = object.clone();
    if let Some(spec) = completed.data.get_mut("spec") {
        fill_in(spec, &old.data["spec"]);
    }
    if completed.data.get("spec") != old.data.get("spec") {
        verdict.forbid("spec", "cannot be changed; create another request instead");
    }
    for name in [labels::CRR_POD_UID, labels::CRR_NODE_NAME] {
        if object.labels().get(name) != old.labels().get(name) {
            verdict.forbid(format!("metadata.labels[{name}]"), "cannot be changed");
        }
    }
    let is_changed = |name: &str| object.annotations().get(name) != old.annotations().get(name);
    let acquired = labels::UNREADY_ACQUIRED;
    // In v1beta1 it is a condition, which no update of the object can change.
    if old.annotations().contains_key(acquired) && is_changed(acquired) {
        let field = format!("metadata.annotations[{acquired}]");
        verdict.forbid(field, "cannot be changed once it is set");
    }
    if is_changed(labels::REQUESTED_BY) {
        let field = format!("metadata.annotations[{}]", labels::REQUESTED_BY);
        verdict.forbid(field, "cannot be changed: it says who created the request");
    }
    if verdict.is_allowed() {
        verdict.warnings = status_annotations::remove_from(&mut completed);
        verdict.patch = patch(object, &completed);
    }
    verdict
}

/// Restores what admission wrote at the creation where the author left it out: `kubectl replace`, and a second
/// `kubectl apply` of a manifest, send only the author's fields.
fn fill_in(spec: &mut Value, old: &Value) {
    let Some(spec) = spec.as_object_mut() else {
        return;
    };
    if let Some(before) = old.get("strategy") {
        let strategy = spec.entry("strategy").or_insert(Value::Null);
        if strategy.is_null() {
            *strategy = json!({});
        }
        let fields = ["failurePolicy", "terminationGracePeriodSeconds"];
        fill_in_fields(strategy, before, &fields);
    }
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    let pairs = containers.into_iter().flatten();
    let pairs = pairs.zip(old["containers"].as_array().into_iter().flatten());
    for (container, before) in pairs {
        fill_in_fields(container, before, &["preStop", "ports", "statusContext"]);
    }
}

fn fill_in_fields(object: &mut Value, old: &Value, fields: &[&str]) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    for field in fields {
        if let Some(before) = old.get(*field)
            && object.get(*field).is_none_or(Value::is_null)
        {
            object.insert((*field).to_owned(), before.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(object: &Value, old: &Value) -> Verdict {
        let [object, old] = [object, old].map(|it| serde_json::from_value(it.clone()).unwrap());
        review_update(&object, &old)
    }

    fn check(object: &Value, old: &Value, expected: &[&str]) {
        let verdict = review(object, old);
        let faults: Vec<_> = verdict.faults.iter().map(ToString::to_string).collect();
        assert_eq!(faults, expected);
        assert!(verdict.is_allowed() || verdict.code() == 403);
    }

    #[test]
    fn spec_and_our_labels_stay() {
        let old = json!({
            "metadata": {"labels": {labels::CRR_POD_UID: "u", labels::CRR_ACTIVE: "true"}},
            "spec": {"podName": "web"},
        });
        check(&old, &old, &[]);
        let without_active = json!({
            "metadata": {"labels": {labels::CRR_POD_UID: "u"}, "annotations": {"a": "b"}},
            "spec": {"podName": "web"},
        });
        check(&without_active, &old, &[]);
        let changed = json!({
            "metadata": {"labels": {labels::CRR_POD_UID: "v", labels::CRR_NODE_NAME: "n"}},
            "spec": {"podName": "other"},
        });
        check(
            &changed,
            &old,
            &[
                "spec: cannot be changed; create another request instead",
                "metadata.labels[crr.apps.kruise.io/pod-uid]: cannot be changed",
                "metadata.labels[crr.apps.kruise.io/node-name]: cannot be changed",
            ],
        );
    }

    #[test]
    fn what_admission_wrote_may_be_left_out_and_nothing_else() {
        let full = json!({"spec": {
            "podName": "web", "activeDeadlineSeconds": 9,
            "strategy": {"failurePolicy": "Fail", "terminationGracePeriodSeconds": 30, "orderedRecreate": true},
            "containers": [{
                "name": "a", "preStop": {"sleep": {"seconds": 1}}, "ports": [],
                "statusContext": {"containerID": "containerd://a", "restartCount": 0},
            }],
        }});
        let manifest = json!({"spec": {
            "podName": "web", "activeDeadlineSeconds": 9, "strategy": {"orderedRecreate": true},
            "containers": [{"name": "a"}],
        }});
        let verdict = review(&manifest, &full);
        assert!(verdict.is_allowed(), "{}", verdict.message());
        let mut patched = manifest.clone();
        json_patch::patch(&mut patched, &verdict.patch).unwrap();
        assert_eq!(patched, full);
        for (pointer, value) in [
            ("/spec/podName", json!("db")),
            ("/spec/containers/0/name", json!("b")),
            ("/spec/strategy/orderedRecreate", json!(null)),
            ("/spec/strategy", json!([])),
            ("/spec/containers", json!([])),
            ("/spec", json!(7)),
        ] {
            let mut changed = manifest.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            check(
                &changed,
                &full,
                &["spec: cannot be changed; create another request instead"],
            );
        }
    }

    #[test]
    fn who_asked_and_since_when_the_pod_is_drained_stay() {
        let with = |key: &str, value: Value| json!({"metadata": {"annotations": {key: value}}});
        let cases = [
            (
                labels::REQUESTED_BY,
                "cannot be changed: it says who created the request",
            ),
            (labels::UNREADY_ACQUIRED, "cannot be changed once it is set"),
        ];
        for (key, problem) in cases {
            let fault = format!("metadata.annotations[{key}]: {problem}");
            let old = with(key, json!("one"));
            check(&old, &old, &[]);
            for changed in [
                with(key, json!("other")),
                with("mine", json!("a")),
                json!({}),
            ] {
                check(&changed, &old, &[&fault]);
            }
        }
        // Who asked is not said later either; the drain begins when it begins.
        let forged = with(labels::REQUESTED_BY, json!("me"));
        let fault = "metadata.annotations[podwright.dev/requested-by]: \
                     cannot be changed: it says who created the request";
        check(&forged, &json!({}), &[fault]);
        check(
            &with(labels::UNREADY_ACQUIRED, json!("now")),
            &json!({}),
            &[],
        );
    }
}

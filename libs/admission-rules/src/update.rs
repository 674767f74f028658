//! The checks of an update: what was once said stays.
//!
//! Owns immutability. Status does not come by here; labels and annotations of others are free.

use model::labels;
use serde_json::{Value, json};

use crate::{
    Verdict,
    read::{Faults, annotation, label},
    status_annotations,
};

pub(crate) fn review_update(object: &Value, old: &Value) -> Verdict {
    let mut faults = Faults::default();
    let mut cleaned = object.clone();
    fill_in(&mut cleaned, old);
    if cleaned.get("spec") != old.get("spec") {
        faults.forbidden("spec", "cannot be changed; create another request instead");
    }
    for name in [labels::CRR_POD_UID, labels::CRR_NODE_NAME] {
        if label(object, name) != label(old, name) {
            faults.forbidden(format!("metadata.labels[{name}]"), "cannot be changed");
        }
    }
    let acquired = annotation(old, labels::UNREADY_ACQUIRED);
    // In v1beta1 it is a condition, which no update of the object can touch.
    if acquired.is_some() && annotation(object, labels::UNREADY_ACQUIRED) != acquired {
        let field = format!("metadata.annotations[{}]", labels::UNREADY_ACQUIRED);
        faults.forbidden(field, "cannot be changed once it is set");
    }
    if annotation(object, labels::REQUESTED_BY) != annotation(old, labels::REQUESTED_BY) {
        let field = format!("metadata.annotations[{}]", labels::REQUESTED_BY);
        faults.forbidden(field, "cannot be changed: it says who created the request");
    }
    if !faults.0.is_empty() {
        return Verdict {
            faults: faults.0,
            ..Verdict::default()
        };
    }
    let warnings = status_annotations::take_away(&mut cleaned);
    Verdict {
        faults: Vec::new(),
        warnings,
        patch: json_patch::diff(object, &cleaned),
    }
}

/// Puts back what admission wrote into the creation, where it is left out: `kubectl apply` of a manifest for the second
/// time, and `kubectl replace`, send only what its author wrote.
fn fill_in(object: &mut Value, old: &Value) {
    let (Some(spec), Some(old)) = (object.get_mut("spec"), old.get("spec")) else {
        return;
    };
    if let (Some(spec), Some(before)) = (spec.as_object_mut(), old.get("strategy")) {
        let strategy = spec.entry("strategy").or_insert(Value::Null);
        if strategy.is_null() {
            *strategy = json!({});
        }
        let fields = ["failurePolicy", "terminationGracePeriodSeconds"];
        fill_in_fields(strategy, before, &fields);
    }
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    let before = old.get("containers").and_then(Value::as_array);
    let pairs = containers.into_iter().flatten();
    for (container, old) in pairs.zip(before.into_iter().flatten()) {
        fill_in_fields(container, old, &["preStop", "ports", "statusContext"]);
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

    fn check(object: &Value, old: &Value, expected: &[&str]) {
        let verdict = review_update(object, old);
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
        let verdict = review_update(&manifest, &full);
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

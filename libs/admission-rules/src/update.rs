//! The checks of an update: what was once said stays.
//!
//! Owns immutability. Status does not come by here; labels and annotations of others are free.

use model::labels;
use serde_json::Value;

use crate::{
    Verdict,
    read::{Faults, annotation, label},
};

/// Set once by the unready grace; then it stays (OpenKruise, v1alpha1).
const UNREADY_ACQUIRED: &str = "crr.apps.kruise.io/unready-acquired";

pub(crate) fn review_update(object: &Value, old: &Value) -> Verdict {
    let mut faults = Faults::default();
    if object.get("spec") != old.get("spec") {
        faults.forbidden("spec", "cannot be changed; create another request instead");
    }
    for name in [labels::CRR_POD_UID, labels::CRR_NODE_NAME] {
        if label(object, name) != label(old, name) {
            faults.forbidden(format!("metadata.labels[{name}]"), "cannot be changed");
        }
    }
    let acquired = annotation(old, UNREADY_ACQUIRED);
    if acquired.is_some() && annotation(object, UNREADY_ACQUIRED) != acquired {
        let field = format!("metadata.annotations[{UNREADY_ACQUIRED}]");
        faults.forbidden(field, "cannot be changed once it is set");
    }
    Verdict {
        faults: faults.0,
        ..Verdict::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
}

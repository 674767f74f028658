//! The two annotations that are status in v1beta1 and mean nothing there.
//!
//! Owns that no reader of v1beta1 sees them: conversion takes them from what was written as v1alpha1, and this
//! from what was written as v1beta1, by an author who only changed the version of an old manifest.

use model::labels;
use serde_json::Value;

use crate::warnings::left_out;

/// Takes them out of a v1beta1 object; returns what its author is to be warned of.
pub(crate) fn take_away(object: &mut Value) -> Vec<String> {
    let is_v1beta1 = object
        .get("apiVersion")
        .and_then(Value::as_str)
        .is_some_and(|version| version.ends_with("/v1beta1"));
    let annotations = object.pointer_mut("/metadata/annotations");
    let Some(annotations) = annotations.and_then(Value::as_object_mut) else {
        return Vec::new();
    };
    if !is_v1beta1 {
        return Vec::new();
    }
    let keys = [
        (
            labels::SYNC_CONTAINER_STATUSES,
            "status.containerStatusSnapshot",
        ),
        (labels::UNREADY_ACQUIRED, "a condition of status"),
    ];
    let taken = keys.into_iter().filter_map(|(key, now)| {
        annotations.remove(key)?;
        Some(left_out(key, now))
    });
    taken.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_v1beta1_loses_them() {
        let object = |version: &str, annotations: Value| json!({"apiVersion": version, "metadata": {"annotations": annotations}});
        let both = json!({
            labels::SYNC_CONTAINER_STATUSES: "[]", labels::UNREADY_ACQUIRED: "now", "mine": "a",
        });
        let mut old = object("apps.kruise.io/v1alpha1", both.clone());
        assert_eq!(take_away(&mut old), [""; 0]);
        assert_eq!(old["metadata"]["annotations"], both);
        let mut new = object("apps.kruise.io/v1beta1", both);
        assert_eq!(
            take_away(&mut new),
            [
                "metadata.annotations[crr.apps.kruise.io/sync-container-statuses] is left out: \
                 it is status.containerStatusSnapshot in v1beta1",
                "metadata.annotations[crr.apps.kruise.io/unready-acquired] is left out: \
                 it is a condition of status in v1beta1",
            ]
        );
        assert_eq!(new["metadata"]["annotations"], json!({"mine": "a"}));
    }
}

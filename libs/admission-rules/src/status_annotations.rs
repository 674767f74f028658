//! The two annotations of v1alpha1 that are status in v1beta1.
//!
//! Conversion moves them when an object was written as v1alpha1. Here they are removed from an object written as
//! v1beta1: its author changed only the version of an old manifest.

use kube_core::{DynamicObject, ResourceExt};
use model::labels;

use crate::warnings::left_out;

/// Removes the annotations from a v1beta1 object; returns a warning for each.
pub(crate) fn remove_from(object: &mut DynamicObject) -> Vec<String> {
    let types = object.types.as_ref();
    if !types.is_some_and(|types| types.api_version.ends_with("/v1beta1")) {
        return Vec::new();
    }
    let (snapshot, acquired) = (labels::SYNC_CONTAINER_STATUSES, labels::UNREADY_ACQUIRED);
    let replacements = [
        (snapshot, "status.containerStatusSnapshot"),
        (acquired, "a condition of status"),
    ];
    let removed = replacements.into_iter().filter_map(|(key, now)| {
        object.annotations_mut().remove(key)?;
        Some(left_out(key, now))
    });
    removed.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_v1beta1_loses_them() {
        let object = |version: &str, annotations: Value| -> DynamicObject {
            let object = json!({
                "apiVersion": version, "kind": "ContainerRecreateRequest",
                "metadata": {"annotations": annotations},
            });
            serde_json::from_value(object).unwrap()
        };
        let both = json!({
            labels::SYNC_CONTAINER_STATUSES: "[]", labels::UNREADY_ACQUIRED: "now", "mine": "a",
        });
        let mut old = object("apps.kruise.io/v1alpha1", both.clone());
        assert_eq!(remove_from(&mut old), [""; 0]);
        assert_eq!(json!(old.metadata.annotations), both);
        let mut new = object("apps.kruise.io/v1beta1", both);
        assert_eq!(
            remove_from(&mut new),
            [
                "metadata.annotations[crr.apps.kruise.io/sync-container-statuses] is left out: \
                 it is status.containerStatusSnapshot in v1beta1",
                "metadata.annotations[crr.apps.kruise.io/unready-acquired] is left out: \
                 it is a condition of status in v1beta1",
            ]
        );
        assert_eq!(json!(new.metadata.annotations), json!({"mine": "a"}));
    }
}

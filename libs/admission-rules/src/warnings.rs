//! What is warned of, and refused for nobody.
//!
//! Owns the words of it. They are shown by kubectl; docs/crr.md lists them.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use model::{ids::CrrName, presence::LastSeen};

use crate::Facts;

/// A node that was not seen for this long earns a warning.
const NODE_SILENT_AFTER: Duration = Duration::from_secs(30);

/// What the author of an accepted request should know.
pub(crate) fn of_creation(pod: &Pod, facts: &Facts) -> Vec<String> {
    let node = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.node_name.as_deref())
        .unwrap_or_default();
    let silent_for = match facts.node_last_seen {
        Some(LastSeen::Ago(time) | LastSeen::NotFor(time)) if time >= NODE_SILENT_AFTER => {
            Some(time.as_secs())
        }
        Some(LastSeen::Ago(_) | LastSeen::NotFor(_)) | None => None,
    };
    let silence = silent_for.map(|seconds| {
        format!("the node-executor of node {node} has not been seen for {seconds} s")
    });
    let waiting = (!facts.other_active.is_empty()).then(|| {
        let names = facts.other_active.iter().map(CrrName::as_str);
        let others = names.collect::<Vec<_>>().join(", ");
        format!("waits for other requests of the same pod: {others}")
    });
    silence.into_iter().chain(waiting).collect()
}

/// Of an annotation that is status in v1beta1.
pub(crate) fn left_out(annotation: &str, now: &str) -> String {
    format!("metadata.annotations[{annotation}] is left out: it is {now} in v1beta1")
}

//! Warnings about accepted requests.
//!
//! Owns their texts, which kubectl shows; docs/crr.md lists them.

use std::time::Duration;

use model::{ids::CrrName, presence::LastSeen};

use crate::Facts;

/// A node that was not seen for this long is warned of.
const NODE_SILENT_AFTER: Duration = Duration::from_secs(30);

/// Warnings about a created CRR whose pod is on `node`.
pub(crate) fn of_creation(node: &str, facts: &Facts) -> Vec<String> {
    let silent_for = facts.node_last_seen.map(|last_seen| match last_seen {
        LastSeen::Ago(time) | LastSeen::NotFor(time) => time,
    });
    let silence = silent_for.filter(|time| *time >= NODE_SILENT_AFTER);
    let silence = silence.map(|time| {
        let seconds = time.as_secs();
        format!("the node-executor of node {node} has not been seen for {seconds} s")
    });
    let waiting = (!facts.other_active.is_empty()).then(|| {
        let names: Vec<_> = facts.other_active.iter().map(CrrName::as_str).collect();
        let others = names.join(", ");
        format!("waits for other requests of the same pod: {others}")
    });
    silence.into_iter().chain(waiting).collect()
}

/// Warning about an annotation that is status in v1beta1.
pub(crate) fn left_out(annotation: &str, now: &str) -> String {
    format!("metadata.annotations[{annotation}] is left out: it is {now} in v1beta1")
}

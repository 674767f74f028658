//! Short texts for traces.
//!
//! Owns the shortening only: objects by name, version and state, and ids without their types.

use model::{crr::Crr, pod::Pod};

/// Longest line, in bytes.
const LONGEST: usize = 320;

/// A request in a few words.
pub(crate) fn crr(crr: &Crr) -> String {
    let states = crr.status.containers.iter();
    let states: Vec<_> = states
        .map(|state| format!("{} {:?}", state.name, state.phase))
        .collect();
    let (uid, version, phase) = (&crr.uid, &crr.version, crr.status.phase);
    let mark = if crr.is_being_deleted { " deleted" } else { "" };
    format!("{uid} v{version} {phase:?} {states:?}{mark}")
}

/// A pod in a few words.
pub(crate) fn pod(pod: &Pod) -> String {
    let statuses = pod.containers.iter();
    let statuses: Vec<_> = statuses
        .map(|status| {
            let id = status.container_id.as_ref().map(|id| id.id.as_str());
            let state = text(&format!("{:?}", status.state));
            let ready = if status.is_ready { "ready" } else { "unready" };
            format!("{} {} {ready}", id.unwrap_or(status.name.as_str()), state)
        })
        .collect();
    let gate = pod.gate.as_ref().map(|gate| &gate.message);
    let (uid, version) = (&pod.uid, &pod.version);
    format!("{uid} v{version} {statuses:?} gate {gate:?}")
}

/// Debug text without the names of newtypes, cut at a bearable length.
pub(crate) fn text(debug: &str) -> String {
    let debug = debug.replace("OrderId { owner: Crr", "Id {");
    let mut short = String::with_capacity(debug.len());
    let mut rest = debug.as_str();
    while let Some(at) = rest.find("(\"") {
        let before = rest[..at].trim_end_matches(|letter: char| letter.is_alphanumeric());
        let quoted = &rest[at + 2..];
        let Some(end) = quoted.find("\")") else {
            break;
        };
        short.push_str(before);
        short.push_str(&quoted[..end]);
        rest = &quoted[end + 2..];
    }
    short.push_str(rest);
    let end = (0..=LONGEST.min(short.len()))
        .rev()
        .find(|end| short.is_char_boundary(*end));
    short.truncate(end.unwrap_or(0));
    short
}

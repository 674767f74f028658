//! `status.message` texts that OpenKruise's users match on.

use model::ids::CrrName;

pub const POD_GONE: &str = "pod has gone";
pub const NODE_SILENT: &str = "daemon has not responded for a long time";
pub const DEADLINE: &str = "recreating has exceeded the activeDeadlineSeconds";
pub const NOT_ADMITTED: &str =
    "the request lacks the labels that admission writes: is the webhook installed?";

/// Of a CRR that waits for its turn.
pub(crate) fn waiting_for(other: &CrrName) -> String {
    format!("waiting for ContainerRecreateRequest {other} of the same pod")
}

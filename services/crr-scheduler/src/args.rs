//! The flags of the crr-scheduler.

use clap::Parser;
use service_kit::{HasKitArgs, KitArgs};

/// Schedules ContainerRecreateRequests: orders stops of nodes and writes the requests' status.
#[derive(Parser, Clone, Debug)]
#[command(version)]
pub struct Args {
    #[command(flatten)]
    pub kit: KitArgs,

    #[command(flatten)]
    pub bus: bus::Args,

    /// The namespace of the leader's Lease.
    #[arg(long, env = "POD_NAMESPACE", default_value = "podwright-system")]
    pub namespace: String,

    /// This replica's name in the Lease; unique among the replicas.
    #[arg(long, env = "POD_NAME", default_value = "crr-scheduler")]
    pub identity: String,

    /// Begin watches with a streamed list (API servers with WatchList). Off: list, then watch.
    #[arg(long, env = "PODWRIGHT_STREAMING_LISTS", default_value_t = true, action = clap::ArgAction::Set)]
    pub streaming_lists: bool,
}

impl HasKitArgs for Args {
    fn kit(&self) -> &KitArgs {
        &self.kit
    }
}

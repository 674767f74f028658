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

    #[command(flatten)]
    pub leader: leader::Args,

    /// Begin watches with a streamed list (API servers with WatchList). Off: list, then watch.
    #[arg(long, env = "PODWRIGHT_STREAMING_LISTS", default_value_t = true, action = clap::ArgAction::Set)]
    pub streaming_lists: bool,
}

impl HasKitArgs for Args {
    fn kit(&self) -> &KitArgs {
        &self.kit
    }
}

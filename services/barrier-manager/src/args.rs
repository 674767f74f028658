//! The flags of the barrier-manager.

use std::num::NonZeroU32;

use clap::Parser;
use service_kit::{HasKitArgs, KitArgs};

/// Starts the containers of pods with launch priorities level by level.
#[derive(Parser, Clone, Debug)]
#[command(version)]
pub struct Args {
    #[command(flatten)]
    pub kit: KitArgs,

    #[command(flatten)]
    pub bus: bus::Args,

    #[command(flatten)]
    pub leader: leader::Args,

    /// After so many seconds a level that is not up earns its pod a warning event.
    #[arg(
        long,
        env = "PODWRIGHT_STUCK_AFTER_SECONDS",
        default_value = "60",
        value_name = "SECONDS"
    )]
    pub stuck_after_seconds: NonZeroU32,

    /// Begin watches with a streamed list (API servers with WatchList). Off: list, then watch.
    #[arg(long, env = "PODWRIGHT_STREAMING_LISTS", default_value_t = true, action = clap::ArgAction::Set)]
    pub streaming_lists: bool,
}

impl HasKitArgs for Args {
    fn kit(&self) -> &KitArgs {
        &self.kit
    }
}

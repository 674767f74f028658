//! The flags of the node-executor.

use std::{num::NonZeroUsize, path::PathBuf, thread::available_parallelism, time::Duration};

use clap::Parser;
use node_rules::Settings;
use service_kit::{HasKitArgs, KitArgs};

/// Carries orders out on this node: runs hooks and stops containers through the container runtime.
#[derive(Parser, Clone, Debug)]
#[command(version)]
pub struct Args {
    #[command(flatten)]
    pub kit: KitArgs,

    #[command(flatten)]
    pub bus: bus::Args,

    /// This node's name in Kubernetes (spec.nodeName).
    #[arg(long, env = "NODE_NAME", value_name = "NAME")]
    pub node_name: String,

    /// The container runtime's CRI socket; without it the usual places are tried.
    #[arg(long, env = "PODWRIGHT_CRI_SOCKET", value_name = "PATH")]
    pub cri_socket: Option<PathBuf>,

    /// Where the journal is kept; on the node itself, so that it outlives the pod.
    #[arg(long, env = "PODWRIGHT_DATA_DIR", value_name = "DIR")]
    #[arg(default_value = "/var/lib/podwright")]
    pub data_dir: PathBuf,

    /// At most so many hooks and stops at once; without it as many as there are processors.
    #[arg(long, env = "PODWRIGHT_MAX_CONCURRENT_STOPS", value_name = "COUNT")]
    pub max_concurrent_stops: Option<NonZeroUsize>,

    /// So many hours a finished order is remembered.
    #[arg(long, env = "PODWRIGHT_RETENTION_HOURS", value_name = "HOURS")]
    #[arg(default_value_t = 24)]
    pub retention_hours: u32,

    /// So many seconds running stops may take to finish when the process is asked to end.
    #[arg(long, env = "PODWRIGHT_DRAIN_SECONDS", value_name = "SECONDS")]
    #[arg(default_value_t = 20)]
    pub drain_seconds: u32,
}

// === impl Args ===

impl Args {
    pub(crate) fn settings(&self) -> Settings {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        let max_concurrent_stops = self.max_concurrent_stops;
        Settings {
            max_concurrent_stops: max_concurrent_stops.map_or(processors, NonZeroUsize::get),
            retention: Duration::from_secs(u64::from(self.retention_hours) * 3600),
            ..Settings::default()
        }
    }
}

impl HasKitArgs for Args {
    fn kit(&self) -> &KitArgs {
        &self.kit
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        Args::command().debug_assert();
    }

    #[test]
    fn needs_no_more_than_the_nodes_name() {
        let args = Args::try_parse_from(["node-executor", "--node-name", "node-a"]).unwrap();
        assert_eq!(args.node_name, "node-a");
        assert!(
            Args::try_parse_from([
                "node-executor",
                "--node-name",
                "a",
                "--max-concurrent-stops",
                "0"
            ])
            .is_err()
        );
    }
}

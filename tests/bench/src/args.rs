//! The command line.

use clap::{Parser, Subcommand};

/// Measures Podwright on a cluster: KUBECONFIG's, or a test cluster for the time of the measurement.
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) what: What,
    /// Measure, here and now: the cluster is there
    #[arg(long, hide = true, global = true)]
    pub(crate) here: bool,
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum What {
    /// Recreate one container of a fresh pod, again and again, one after the other
    Crr {
        /// How many pods
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
        count: u32,
    },
}

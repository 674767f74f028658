//! The command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{Parser, Subcommand};

/// A real Kubernetes of several nodes on this machine, to test on and to break.
///
/// It needs root, and neither a container engine nor a registry. Its programs are built from source
/// once (6 to 8 minutes on two cores) and kept under $PODWRIGHT_CACHE (by default
/// ~/.cache/podwright); after that a cluster is up in about five seconds.
#[derive(Debug, Parser)]
#[command(name = "podwright-cluster", version)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Bring a cluster up; it stays until `down`
    Up {
        /// How many nodes, named node-1, node-2, …
        #[arg(long, default_value_t = 2)]
        nodes: u8,
    },
    /// End the cluster and remove everything of it but its logs
    Down,
    /// Show what runs
    Status,
    /// Run kubectl as administrator
    #[command(disable_help_flag = true)]
    Kubectl {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run a program where it reaches the API server, pods and services, with KUBECONFIG set
    ///
    /// It runs in the control plane's network namespace. Proxy and certificate variables of the
    /// environment are taken out.
    Exec {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
    /// Build programs and images without starting anything
    Build,
    /// Print where a program of the cluster is, built if missing
    Path {
        /// For example kubelet, kubectl, etcd, nats-server, crictl
        program: String,
    },
    /// Give an image archive, as `docker save` writes it, to all nodes
    Load {
        #[arg(required = true)]
        archives: Vec<PathBuf>,
    },
}

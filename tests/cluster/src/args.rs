//! The command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{Parser, Subcommand, ValueEnum};

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
    /// Build our services and roll them out from the manifests
    Deploy {
        /// The checkout to build
        #[arg(long, default_value = ".")]
        root: PathBuf,
    },
    /// Build programs and images without starting anything
    Build,
    /// Print where a program of the cluster is, built if missing
    Path {
        /// For example kubelet, kubectl, etcd, nats-server, crictl
        program: String,
    },
    /// Pack a program with the libraries it needs as an image, and print the archive's path
    Image {
        /// For example localhost/admission:dev
        name: String,
        binary: PathBuf,
        /// What the image runs; by default the program alone, which lies in /usr/local/bin
        #[arg(last = true)]
        entrypoint: Vec<String>,
    },
    /// Give an image archive, as `docker save` writes it, to all nodes
    Load {
        #[arg(required = true)]
        archives: Vec<PathBuf>,
    },
    /// Collect the logs of all processes and pods, and print where
    Logs {
        /// Only files whose path has this in it (`kubelet`, `node-1`, a pod's name)
        #[arg(default_value = "")]
        pattern: String,
        /// The folder to put them in, emptied first
        #[arg(long)]
        into: Option<PathBuf>,
    },
    /// Look inside a node
    Node {
        name: String,
        #[command(subcommand)]
        command: NodeCommand,
    },
    /// Break something, or put it right
    #[command(subcommand)]
    Fault(Fault),
}

#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Run a program in the node's namespaces, for example `crictl ps` or `ctr -n k8s.io tasks ls`
    Exec {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
}

#[derive(Debug, Subcommand)]
pub enum Fault {
    /// A node as a whole
    Node {
        /// For example node-1
        name: String,
        #[command(subcommand)]
        fault: NodeFault,
    },
    /// One process, by its name in `status` (etcd, kube-apiserver, node-1/kubelet, …)
    Process { name: String, fault: ProcessFault },
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub enum NodeFault {
    /// End it without warning, as when its power fails
    Kill,
    /// Start it again, killing it first if it runs; its disk is as it was
    Restart,
    /// Pull out its network cable
    CutOff,
    /// Plug the cable in again
    Restore,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ProcessFault {
    /// SIGKILL
    Kill,
    /// SIGTERM, and wait for its end
    Terminate,
    /// SIGSTOP
    Pause,
    /// SIGCONT
    Resume,
    /// Start it again by the same command line
    Start,
    /// Kill and start
    Restart,
}

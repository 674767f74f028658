//! The test cluster: a real Kubernetes of several nodes on one Linux machine, without container
//! engine or registry.
//!
//! Start at `cluster` (up, down, what tests use); `programs` and `images` build what it is made of,
//! `control_plane` and `node` start it, `fault` breaks it on purpose, `cleanup` ends it.
//!
//! Tests run under `podwright-cluster exec`, where they reach the API server, pods and services,
//! and take hold of the cluster itself so:
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use cluster::{Cluster, Folders};
//!
//! let cluster = Cluster::attach(Folders::from_environment()?)?;
//! cluster.restart("node-1/containerd").await?;
//! cluster.cut_off_node("node-2").await?;
//! cluster.restore_node("node-2").await?;
//! assert_eq!(cluster.stops_of("node-1", "0123abcd")?, 0);
//! # Ok(())
//! # }
//! ```

mod args;
mod bring_up;
mod cgroup;
mod cleanup;
mod cluster;
mod command;
mod control_plane;
mod coredns;
mod daemon;
mod deploy;
mod events;
mod fault;
mod folders;
mod images;
mod kubectl;
mod lock;
mod logs;
mod network;
mod node;
mod pki;
mod plan;
mod process;
mod programs;
mod progress;
mod proxy;
mod requirements;
mod run;
mod state;
mod status;
mod users;
mod wait;

pub use self::{
    args::Args,
    cluster::{Cluster, Options, build},
    command::{FOREIGN_VARIABLES, as_if_called_by_hand},
    events::RuntimeEvent,
    folders::Folders,
    images::{BUSYBOX, Image, PAUSE, from_binary},
    logs::collect as collect_logs,
    process::Condition,
    programs::Programs,
    progress::say,
    run::run,
};

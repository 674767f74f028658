//! Breaks the cluster on purpose, and puts it right again.
//!
//! Every method returns when the fault has happened (a killed process is dead, a started one
//! answers); what Kubernetes then does about it is for the test to wait for.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use crate::{
    cluster::Cluster,
    control_plane,
    daemon::{Daemon, Place},
    network, node,
    process::{Condition, Identity},
    wait,
};

impl Cluster {
    /// Ends a node without warning, as when its power fails: what is on its disk stays.
    pub async fn kill_node(&self, name: &str) -> Result<()> {
        let node = self.number(name)?;
        // Pulled out first, or the dying programs' connections would be closed politely.
        network::plug(node, false).await?;
        node::kill(node).await
    }

    /// Starts a node again after `kill_node`, or kills and starts it: a reboot.
    pub async fn restart_node(&self, name: &str) -> Result<()> {
        let node = self.number(name)?;
        node::kill(node).await?;
        node::forget(node).await?;
        let nodes = self.state()?.nodes;
        node::start_runtime(&self.folders, &self.programs, node, &nodes).await?;
        node::start_kubelet(&self.folders, &self.programs, node)
    }

    /// Pulls a node's cable out: everything on it goes on, alone.
    pub async fn cut_off_node(&self, name: &str) -> Result<()> {
        network::plug(self.number(name)?, false).await
    }

    /// Plugs the cable in again.
    pub async fn restore_node(&self, name: &str) -> Result<()> {
        network::plug(self.number(name)?, true).await
    }

    /// Kills a process (`etcd`, `node-1/kubelet`, …: see `status`) without warning.
    pub async fn kill(&self, process: &str) -> Result<()> {
        self.end(process, Signal::SIGKILL).await
    }

    /// Asks a process to end, and waits until it has.
    pub async fn terminate(&self, process: &str) -> Result<()> {
        self.end(process, Signal::SIGTERM).await
    }

    /// Stops a process where it is: it keeps its connections and answers nothing.
    pub async fn pause(&self, process: &str) -> Result<()> {
        self.signal_until(process, Signal::SIGSTOP, Condition::Paused)
            .await
    }

    pub async fn resume(&self, process: &str) -> Result<()> {
        self.signal_until(process, Signal::SIGCONT, Condition::Running)
            .await
    }

    /// Starts a dead process again by the same command line, and waits until it answers.
    pub async fn start(&self, process: &str) -> Result<()> {
        let daemon = self.daemon(process)?;
        if daemon.condition() != Condition::Dead {
            bail!("{process} runs already");
        }
        let (place, program) = (daemon.place, daemon.command[0].clone());
        daemon.start(&self.folders)?;
        match place {
            Place::Node(node) if program.ends_with("/containerd") => {
                node::wait_for_runtime(&self.folders, node).await?;
                // It ended with its runtime.
                self.end(&node::event_log(node), Signal::SIGKILL).await?;
                node::start_event_log(&self.folders, &self.programs, node)
            }
            Place::Node(_) => Ok(()),
            Place::ControlPlane => {
                let ends = ["/etcd", "/kube-apiserver"];
                if ends.iter().any(|end| program.ends_with(end)) {
                    control_plane::wait_until_ready(&self.folders, &self.programs).await?;
                }
                Ok(())
            }
        }
    }

    /// Kills a process and starts it again.
    pub async fn restart(&self, process: &str) -> Result<()> {
        self.kill(process).await?;
        self.start(process).await
    }

    pub(crate) fn daemon(&self, process: &str) -> Result<Daemon> {
        let mut daemons = self.state()?.daemons;
        if let Some(daemon) = daemons.remove(process) {
            return Ok(daemon);
        }
        let known: Vec<_> = daemons.into_keys().collect();
        bail!(
            "there is no process `{process}`; there are: {}",
            known.join(", ")
        )
    }

    async fn end(&self, process: &str, signal: Signal) -> Result<()> {
        let Some(identity) = self.daemon(process)?.identity.filter(Identity::alive) else {
            return Ok(());
        };
        identity.signal(signal)?;
        // A paused process only ends when it goes on.
        identity.signal(Signal::SIGCONT)?;
        wait_for(process, identity, Condition::Dead).await
    }

    async fn signal_until(&self, process: &str, signal: Signal, until: Condition) -> Result<()> {
        let identity = self.daemon(process)?.identity.filter(Identity::alive);
        let identity = identity.with_context(|| format!("{process} is dead"))?;
        identity.signal(signal)?;
        wait_for(process, identity, until).await
    }
}

async fn wait_for(process: &str, identity: Identity, condition: Condition) -> Result<()> {
    let what = format!("{process} to be {condition:?}").to_lowercase();
    wait::until(&what, Duration::from_secs(30), async || {
        Ok(identity.condition() == condition)
    })
    .await
}

//! The running cluster: up, down, and what tests do with it in between.

use std::{ffi::OsStr, path::PathBuf};

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;

use crate::{
    cleanup,
    folders::Folders,
    images,
    images::Image,
    kubectl, lock, node,
    plan::NodeNumber,
    process::Condition,
    programs::Programs,
    progress::say,
    requirements,
    state::{Phase, State},
};

/// What may be chosen about a cluster.
#[derive(Clone, Debug)]
pub struct Options {
    pub folders: Folders,
    pub nodes: u8,
}

impl Options {
    pub fn from_environment() -> Result<Self> {
        Ok(Self {
            folders: Folders::from_environment()?,
            nodes: 2,
        })
    }
}

/// A cluster that is up. Dropping this leaves it running; several may be attached at a time.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub(crate) folders: Folders,
    pub(crate) programs: Programs,
}

impl Cluster {
    /// Brings a cluster up, and cleans away first what a killed run left. The cluster goes on
    /// when this process ends; when it does not come up, nothing stays but its logs.
    pub async fn up(options: &Options) -> Result<Self> {
        requirements::check()?;
        let folders = options.folders.clone();
        let _lock = lock::take(&folders.lock("cluster"))?;
        refuse_second(&folders)?;
        let nodes = NodeNumber::all(options.nodes)?;
        let (programs, images) = build(&folders).await?;
        if cleanup::remove_all(&folders).await? {
            say("cleaned away what an earlier run left");
        }
        clear_logs(&folders)?;
        let cluster = Self { folders, programs };
        match cluster.bring_up(nodes, &images).await {
            Ok(()) => Ok(cluster),
            Err(error) => {
                cleanup::remove_all(&cluster.folders).await?;
                let logs = cluster.folders.logs();
                Err(error.context(format!(
                    "the cluster did not come up; see {}",
                    logs.display()
                )))
            }
        }
    }

    /// The cluster that is up already.
    pub fn attach(folders: Folders) -> Result<Self> {
        let state = State::read(&folders)?.context("no cluster is up")?;
        if state.phase != Phase::Ready || state.processes().is_empty() {
            bail!("no cluster is up, only what is left of one; `down` or `up` cleans it away");
        }
        Ok(Self {
            folders,
            programs: state.programs,
        })
    }

    /// Ends the cluster and removes all of it but the logs. Says whether there was one.
    pub async fn down(folders: &Folders) -> Result<bool> {
        requirements::check()?;
        let _lock = lock::take(&folders.lock("cluster"))?;
        cleanup::remove_all(folders).await
    }

    /// For kubectl and for clients, inside the control plane's network namespace.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folders.kubeconfig()
    }

    /// One JSON line per answered request.
    pub fn audit_log(&self) -> PathBuf {
        self.folders.audit_log()
    }

    pub(crate) fn state(&self) -> Result<State> {
        State::read(&self.folders)?.context("no cluster is up")
    }

    /// The names of all nodes.
    pub fn nodes(&self) -> Result<Vec<String>> {
        Ok(self
            .state()?
            .nodes
            .into_iter()
            .map(NodeNumber::name)
            .collect())
    }

    /// Whether a process (`etcd`, `node-1/kubelet`, …) runs.
    pub fn condition(&self, process: &str) -> Result<Condition> {
        Ok(self.daemon(process)?.condition())
    }

    /// The node of that name, if this cluster has it.
    pub(crate) fn number(&self, name: &str) -> Result<NodeNumber> {
        let number = NodeNumber::parse(name)?;
        if !self.state()?.nodes.contains(&number) {
            bail!("this cluster has no {name}");
        }
        Ok(number)
    }

    /// Runs kubectl and gives what it printed.
    pub async fn kubectl<I, S>(&self, arguments: I) -> Result<String>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        kubectl::run(&self.folders, &self.programs, arguments).await
    }

    /// Applies a manifest, server-side.
    pub async fn apply(&self, manifest: &str) -> Result<()> {
        kubectl::apply(&self.folders, &self.programs, manifest).await
    }

    /// Runs a program inside a node (crictl and ctr are on the path) and gives what it printed.
    pub async fn run_on(&self, name: &str, words: &[&str]) -> Result<String> {
        node::run(&self.folders, self.number(name)?, words).await
    }

    /// The folder that a node's kubelet takes static pods from.
    pub fn static_pods(&self, name: &str) -> Result<PathBuf> {
        let node = self.number(name)?.name();
        Ok(self.folders.node(&node).join(node::STATIC_PODS))
    }

    /// Gives an image to all nodes that are up.
    pub async fn load(&self, image: &Image) -> Result<()> {
        let state = self.state()?;
        let up = |node: &NodeNumber| state.keepers.get(&node.name()).is_some_and(|k| k.alive());
        let nodes = state.nodes.iter().copied().filter(up);
        try_join_all(nodes.map(|node| node::load(&self.folders, node, image))).await?;
        Ok(())
    }
}

/// Builds all programs and images that are not in the cache.
pub async fn build(folders: &Folders) -> Result<(Programs, Vec<Image>)> {
    requirements::check_build()?;
    let programs = Programs::build_all(folders).await?;
    let images = images::build_all(folders, &programs).await?;
    Ok((programs, images))
}

fn refuse_second(folders: &Folders) -> Result<()> {
    // An unreadable state is a left-over, which is cleaned away.
    let Ok(Some(state)) = State::read(folders) else {
        return Ok(());
    };
    if state.phase == Phase::Ready && !state.processes().is_empty() {
        bail!(
            "a cluster is up already; `down` ends it\n{}",
            crate::status::Status::of(&state)
        );
    }
    Ok(())
}

fn clear_logs(folders: &Folders) -> Result<()> {
    if folders.logs().exists() {
        std::fs::remove_dir_all(folders.logs()).context("failed to remove the old logs")?;
    }
    crate::folders::create(&folders.logs())
}

//! The running cluster: up, down, and what tests do with it in between.

use std::{ffi::OsStr, path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use tokio::time::Instant;

use crate::{
    cleanup, control_plane, coredns,
    folders::Folders,
    images::{Image, Images},
    kubectl, lock, node,
    plan::NodeNumber,
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
    /// when this process ends.
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
        cluster.bring_up(nodes, &images).await?;
        Ok(cluster)
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

    pub fn state(&self) -> Result<State> {
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

    /// Gives an image to all nodes that are up.
    pub async fn load(&self, image: &Image) -> Result<()> {
        let state = self.state()?;
        let up = |node: &NodeNumber| state.keepers.get(&node.name()).is_some_and(|k| k.alive());
        let nodes = state.nodes.iter().copied().filter(up);
        try_join_all(nodes.map(|node| node::load(&self.folders, node, image))).await?;
        Ok(())
    }

    async fn bring_up(&self, nodes: Vec<NodeNumber>, images: &Images) -> Result<()> {
        let started = Instant::now();
        let (folders, programs) = (&self.folders, &self.programs);
        let mut state = State::new(nodes.clone(), programs.clone())?;
        state.write(folders)?;
        state.made_folders = node::make_mount_points()?;
        state.write(folders)?;

        say(format_args!(
            "starting the control plane and {} nodes …",
            nodes.len()
        ));
        control_plane::prepare(folders, &nodes).await?;
        let runtimes = nodes
            .iter()
            .map(|node| self.start_runtime(*node, &nodes, &images.needed));
        tokio::try_join!(
            control_plane::start(folders, programs, &nodes),
            try_join_all(runtimes)
        )?;
        for node in &nodes {
            node::start_kubelet(folders, programs, *node)?;
        }
        say(format_args!(
            "waiting for the nodes … ({:.1} s)",
            started.elapsed().as_secs_f32()
        ));
        tokio::try_join!(
            coredns::deploy(folders, programs),
            self.load_further(&nodes, &images.further),
            self.wait_for_nodes(&nodes),
        )?;
        say(format_args!(
            "waiting for the name server … ({:.1} s)",
            started.elapsed().as_secs_f32()
        ));
        self.wait_for_pods().await?;
        State::update(folders, |state| state.phase = Phase::Ready)?;
        say(format_args!(
            "the cluster is up ({:.1} s)",
            started.elapsed().as_secs_f32()
        ));
        Ok(())
    }

    async fn start_runtime(
        &self,
        node: NodeNumber,
        nodes: &[NodeNumber],
        images: &[Image],
    ) -> Result<()> {
        node::start_runtime(&self.folders, &self.programs, node, nodes).await?;
        try_join_all(
            images
                .iter()
                .map(|image| node::load(&self.folders, node, image)),
        )
        .await?;
        Ok(())
    }

    async fn load_further(&self, nodes: &[NodeNumber], images: &[Image]) -> Result<()> {
        let loads = nodes
            .iter()
            .flat_map(|node| images.iter().map(move |image| (*node, image)));
        try_join_all(loads.map(|(node, image)| node::load(&self.folders, node, image))).await?;
        Ok(())
    }

    async fn wait_for_nodes(&self, nodes: &[NodeNumber]) -> Result<()> {
        let waits = nodes.iter().map(async |node| {
            let name = format!("node/{}", node.name());
            // kubectl waits for the creation of one object only.
            for condition in ["--for=create", "--for=condition=Ready"] {
                self.kubectl(["wait", condition, "--timeout=90s", &name])
                    .await?;
            }
            Ok::<_, anyhow::Error>(())
        });
        try_join_all(waits)
            .await
            .context("the nodes did not become ready; see `logs kubelet`")?;
        Ok(())
    }

    /// The name server answers, and pods can be created in the default namespace.
    async fn wait_for_pods(&self) -> Result<()> {
        let timeout = format!("--timeout={}s", Duration::from_secs(60).as_secs());
        let server = [
            "wait",
            "--for=condition=Available",
            "-n",
            "kube-system",
            "deployment/coredns",
        ];
        let account = [
            "wait",
            "--for=create",
            "-n",
            "default",
            "serviceaccount/default",
        ];
        tokio::try_join!(
            self.kubectl(server.iter().copied().chain([timeout.as_str()])),
            self.kubectl(account.iter().copied().chain([timeout.as_str()])),
        )
        .context("the name server did not come up; see `logs coredns`")?;
        Ok(())
    }
}

/// Builds all programs and images that are not in the cache.
pub async fn build(folders: &Folders) -> Result<(Programs, Images)> {
    requirements::check_build()?;
    let programs = Programs::build_all(folders).await?;
    let images = Images::build_all(folders, &programs).await?;
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

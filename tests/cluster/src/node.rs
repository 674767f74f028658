//! One node: its namespaces and the programs in them.

mod configuration;
mod mounts;

use std::time::Duration;

use anyhow::{Context, Result};

use crate::{
    cgroup::Cgroups,
    command::{bare, output},
    daemon::{Daemon, Place, entrance},
    folders::Folders,
    images::Image,
    network,
    plan::NodeNumber,
    programs::Programs,
    proxy,
    state::State,
    wait,
};

pub(crate) use self::{
    configuration::STATIC_PODS,
    mounts::{POD_LOGS, make_mount_points},
};

/// Starts the node's runtime and waits until it takes requests. Nothing here needs an API server.
pub(crate) async fn start_runtime(
    folders: &Folders,
    programs: &Programs,
    node: NodeNumber,
    nodes: &[NodeNumber],
) -> Result<()> {
    network::create_node(node, nodes).await?;
    let cgroups = Cgroups::find()?;
    cgroups.create(&node.namespace())?;
    let disk = folders.node(&node.name());
    configuration::write(folders, node, &disk)?;
    let keeper = mounts::hold(node, &disk, &cgroups.entrance(&node.namespace())).await?;
    State::update(folders, |state| {
        state.keepers.insert(node.name(), keeper);
    })?;

    let containerd = Daemon::new(folders, Place::Node(node), &programs.path("containerd")?);
    let settings = configuration::containerd_file(&disk);
    containerd
        .arguments([format!("--config={}", settings.display())])
        .start(folders)?;
    wait_for_runtime(folders, node).await?;
    start_event_log(folders, programs, node)
}

/// Where the runtime listens, on every node.
const SOCKET: &str = "run/containerd/containerd.sock";

/// Waits until the runtime answers.
pub(crate) async fn wait_for_runtime(folders: &Folders, node: NodeNumber) -> Result<()> {
    let what = format!("containerd on {} to answer", node.name());
    wait::until(&what, Duration::from_secs(30), async || {
        Daemon::check(folders, &format!("{}/containerd", node.name()))?;
        Ok(mounts::sees(folders, node, SOCKET)?
            && run(folders, node, &["ctr", "version"]).await.is_ok())
    })
    .await
}

/// Writes down every event of the runtime from now on, for counting.
pub(crate) fn start_event_log(
    folders: &Folders,
    programs: &Programs,
    node: NodeNumber,
) -> Result<()> {
    let mut daemon = Daemon::new(folders, Place::Node(node), &programs.path("ctr")?)
        .arguments(["--namespace=k8s.io", "events"]);
    daemon.name = event_log(node);
    daemon.log = folders.log_of(&daemon.name);
    daemon.start(folders)
}

/// The name of the daemon that writes a node's events down.
pub(crate) fn event_log(node: NodeNumber) -> String {
    format!("{}/runtime-events", node.name())
}

/// Starts what makes the node a part of Kubernetes; the API server must be ready.
pub(crate) fn start_kubelet(
    folders: &Folders,
    programs: &Programs,
    node: NodeNumber,
) -> Result<()> {
    let disk = folders.node(&node.name());
    let place = Place::Node(node);
    Daemon::new(folders, place, &programs.path("kubelet")?)
        .arguments([
            format!("--config={}", configuration::kubelet_file(&disk).display()),
            format!(
                "--kubeconfig={}",
                folders.kubeconfig_of(&node.name()).display()
            ),
            format!("--hostname-override={}", node.name()),
            format!("--node-ip={}", node.address()),
            "--v=2".to_owned(),
        ])
        .start(folders)?;
    proxy::daemon(folders, programs, place, node)?.start(folders)
}

/// Gives an image to the node's runtime.
pub(crate) async fn load(folders: &Folders, node: NodeNumber, image: &Image) -> Result<()> {
    let archive = image.archive.display().to_string();
    let label = "io.cri-containerd.image=managed";
    let import = [
        "ctr", "-n", "k8s.io", "images", "import", "--local", "--label", label, &archive,
    ];
    run(folders, node, &import)
        .await
        .with_context(|| format!("failed to load {} on {}", image.name, node.name()))?;
    Ok(())
}

/// Runs a program inside the node, to its end.
pub(crate) async fn run(folders: &Folders, node: NodeNumber, words: &[&str]) -> Result<String> {
    let state = State::read(folders)?.context("no cluster is up")?;
    let inside = entrance(&state, Place::Node(node))?;
    let mut command = bare(&inside[0]);
    output(
        command
            .args(&inside[1..])
            .args(words)
            .env("PATH", state.programs.search_path()),
    )
    .await
}

/// Kills everything that runs on the node, as when its power fails.
pub(crate) async fn kill(node: NodeNumber) -> Result<()> {
    crate::cleanup::kill_all(&[node.namespace()]).await
}

/// Takes away what a killed node left besides its disk.
pub(crate) async fn forget(node: NodeNumber) -> Result<()> {
    network::delete_node(node).await?;
    Cgroups::find()?.remove(&node.namespace()).await
}

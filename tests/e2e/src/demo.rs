//! The demo: a pod of two containers, one of which is recreated, with all that happens on the way.
//!
//! Owns the order of scenes. How they look is `paper`'s, what is watched is `watch`'s.

mod paper;
mod watch;

use std::{ffi::OsString, process::ExitCode};

use anyhow::{Context, Result};
use clap::Parser;
use k8s_openapi::api::core::v1::Pod;

use self::{paper::Paper, watch::Watch};
use crate::{
    kubectl::kubectl,
    pod::{Instance, PodPlan},
    space::Space,
    stage::{enter_if_asked, run_on_stage},
    trace::wait_for_trace,
};

/// Shows one container of a running pod being recreated.
///
/// It starts a test cluster of two nodes, unless KUBECONFIG names a cluster with Podwright on it.
#[derive(Debug, Parser)]
#[command(name = "demo")]
struct Args {
    /// Leave the cluster and the pod as they are at the end, to look around
    #[arg(long)]
    keep: bool,
    /// Play, here and now: the cluster is there
    #[arg(long, hide = true)]
    play: bool,
}

/// The request, as a user writes it.
const REQUEST: &str = "apiVersion: apps.kruise.io/v1beta1
kind: ContainerRecreateRequest
metadata: {name: new-app}
spec:
  podName: shop
  containers: [{name: app}]
";

/// The container that is recreated, and the one that is not.
const CONTAINERS: [&str; 2] = ["app", "proxy"];

/// Starts a cluster if need be, and shows.
///
/// # Errors
/// Whatever did not work: it is a demo of things that do.
pub async fn run() -> Result<ExitCode> {
    if let Some(end) = enter_if_asked().await {
        return end;
    }
    let args = Args::parse();
    if args.play {
        return play(args.keep).await.map(|()| ExitCode::SUCCESS);
    }
    let ourselves = std::env::current_exe().context("failed to find this program")?;
    let mut command = vec![ourselves.into_os_string(), OsString::from("--play")];
    command.extend(args.keep.then(|| OsString::from("--keep")));
    run_on_stage(&command, args.keep).await
}

async fn play(keep: bool) -> Result<()> {
    let paper = Paper::new();
    let space = Space::create("demo").await?;
    let shown = tokio::select! {
        shown = show(&paper, &space) => shown,
        signal = tokio::signal::ctrl_c() => signal.map_err(Into::into),
    };
    if keep {
        look_further(&paper, &space);
    } else {
        paper.title("Look around");
        paper.command(
            "./dev demo --keep",
            "the same, left running with what to look at",
        );
        space.remove().await?;
    }
    shown
}

async fn show(paper: &Paper, space: &Space) -> Result<()> {
    paper.title("A pod with two containers");
    let app = "echo finishing what was begun >> /shared/log; sleep 1";
    let plan = PodPlan::new("shop")
        .container_with_hook("app", app)
        .container("proxy");
    let before = space.start(&plan).await?;
    let node = before.spec.as_ref().and_then(|spec| spec.node_name.clone());
    paper.line(&format!("pod shop runs on {}", node.unwrap_or_default()));
    for container in CONTAINERS {
        let instance = Instance::of(&before, container)?;
        let (id, restarts) = (short(&instance), instance.restart_count);
        paper.line(&format!("{container:<8} {id}   restarts {restarts}"));
    }

    paper.title("Asking for a new app container");
    paper.quote("kubectl apply -f -", REQUEST);
    let mut watch = Watch::start(space, "shop", "new-app", &before).await?;
    let apply = ["-n", &space.name, "apply", "-f", "-"];
    let (applied, watched) = tokio::join!(kubectl(&apply, REQUEST), watch.until_completed(paper));
    applied?;
    let request = watched?;

    paper.title("What has become of it");
    let after = space.pods().get("shop").await?;
    compare(paper, &before, &after)?;

    paper.title("The whole way, as one trace");
    let wanted = ["recreate", "order", "cri StopContainer"];
    let trace = wait_for_trace(&space.client, &request, &wanted).await?;
    paper.faint(&format!("  {}", trace.head()));
    trace.lines().iter().for_each(|line| paper.line(line));
    Ok(())
}

fn compare(paper: &Paper, before: &Pod, after: &Pod) -> Result<()> {
    for container in CONTAINERS {
        let (old, new) = (
            Instance::of(before, container)?,
            Instance::of(after, container)?,
        );
        let (from, to) = (short(&old), short(&new));
        let line = if old == new {
            format!("{container:<8} {from}   untouched")
        } else {
            let (was, is) = (old.restart_count, new.restart_count);
            format!("{container:<8} {from} → {to}   restarts {was} → {is}")
        };
        paper.line(&line);
    }
    let same = before.metadata.uid == after.metadata.uid;
    let word = if same { "the same" } else { "another one" };
    paper.line(&format!("the pod, its address and its volumes: {word}"));
    Ok(())
}

fn look_further(paper: &Paper, space: &Space) {
    let name = &space.name;
    paper.title("Look around");
    for (command, what) in [
        (
            format!("./dev cluster kubectl -n {name} get crr,pods"),
            "what there is",
        ),
        (
            format!("./dev cluster kubectl -n {name} get crr new-app -o yaml"),
            "the request in full",
        ),
        (
            "./dev cluster kubectl -n podwright-system get pods".to_owned(),
            "the services",
        ),
        (
            "./dev cluster kubectl -n podwright-system logs ds/node-executor".to_owned(),
            "what a node did",
        ),
        (
            "./dev cluster kubectl explain crr.spec.strategy".to_owned(),
            "what else can be asked for",
        ),
        ("./dev cluster down".to_owned(), "end it"),
    ] {
        paper.command(&command, what);
    }
}

/// The first digits of a container's id, as `crictl ps` shows them.
fn short(instance: &Instance) -> String {
    instance.runtime_id().chars().take(12).collect()
}

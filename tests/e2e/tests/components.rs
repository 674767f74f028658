//! The components of k8s/components, each rendered with the base as an overlay of a user's would.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use e2e::kubectl;
use k8s_openapi::api::{apps::v1::DaemonSet, core::v1::Container};

/// What kubectl makes of the base with a component.
async fn render(component: &str) -> Result<String> {
    // Asked for when it runs: a cached build of another checkout would name that one.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").context("cargo tells its tests")?;
    let root: PathBuf = Path::new(&here).join("../..").canonicalize()?;
    let folder = tempfile::tempdir()?;
    // Kustomize takes no absolute path.
    let overlay = folder.path().canonicalize()?;
    let up = "../".repeat(overlay.components().count() - 1);
    let k8s = format!("{up}{}/k8s", root.strip_prefix("/")?.display());
    let text = format!("resources: [{k8s}/base]\ncomponents: [{k8s}/components/{component}]\n");
    tokio::fs::write(overlay.join("kustomization.yaml"), text).await?;
    kubectl(&["kustomize", &overlay.display().to_string()], "").await
}

/// Checks where the node-executor looks for the runtime, and that this folder of the node is there for it.
async fn check_socket(component: &str, socket: &str) -> Result<()> {
    let rendered = render(component).await?;
    let select = [
        "create",
        "--dry-run=client",
        "--validate=false",
        "-o",
        "json",
        "-f",
        "-",
    ];
    let documents = rendered.split("\n---\n");
    let mut executors = documents.filter(|document| document.contains("\nkind: DaemonSet\n"));
    let executor = executors.next().context("there is no DaemonSet")?;
    let executor: DaemonSet = serde_json::from_str(&kubectl(&select, executor).await?)?;
    let pod = executor
        .spec
        .context("it has a spec")?
        .template
        .spec
        .context("it has pods")?;
    let container: &Container = &pod.containers[0];
    let mut variables = container.env.iter().flatten();
    let variable = variables.find(|variable| variable.name == "PODWRIGHT_CRI_SOCKET");
    let told = variable.and_then(|variable| variable.value.as_deref());
    ensure!(told == Some(socket), "the socket is {told:?}");

    let folder = Path::new(socket).parent().context("it is in a folder")?;
    let mut mounts = container.volume_mounts.iter().flatten();
    let mount = mounts.find(|mount| Path::new(&mount.mount_path) == folder);
    let mount = mount.context("its folder is not mounted")?;
    let mut volumes = pod.volumes.iter().flatten();
    let volume = volumes.find(|volume| volume.name == mount.name);
    let path = volume.and_then(|volume| Some(&*volume.host_path.as_ref()?.path));
    ensure!(
        path.map(Path::new) == Some(folder),
        "the node's folder is {path:?}"
    );
    ensure!(
        !rendered.contains("path: /run/containerd\n"),
        "the other runtime's is left"
    );
    Ok(())
}

#[tokio::test]
async fn nodes_of_k3s_have_its_containerd() -> Result<()> {
    check_socket("k3s", "/run/k3s/containerd/containerd.sock").await
}

#[tokio::test]
async fn nodes_of_cri_o_have_its_socket() -> Result<()> {
    check_socket("cri-o", "/var/run/crio/crio.sock").await
}

#[tokio::test]
async fn every_pod_is_gated_where_that_is_wanted() -> Result<()> {
    let rendered = render("gate-every-pod").await?;
    let gate = "name: PODWRIGHT_READINESS_GATE\n          value: every-pod\n";
    ensure!(rendered.contains(gate), "{rendered}");
    Ok(())
}

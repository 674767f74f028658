//! Putting our services on the cluster: build, pack, load, apply, wait until they serve.
//!
//! Owns the way from a checkout to running pods. The manifests are `k8s/overlays/test-cluster`, as they stand.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};
use tokio::{process::Command, time::Instant};

use crate::{
    cluster::Cluster,
    command::{as_if_called_by_hand, output_of},
    folders::Folders,
    images::from_binary,
    kubectl,
    progress::say,
    wait::until,
};

/// Every service, as crate, image and Deployment or DaemonSet are named.
const SERVICES: [&str; 4] = [
    "admission",
    "barrier-manager",
    "crr-scheduler",
    "node-executor",
];

/// What has to be rolled out before anything works.
const WORKLOADS: [&str; 6] = [
    "deployment/nats",
    "deployment/jaeger",
    "deployment/admission",
    "deployment/barrier-manager",
    "deployment/crr-scheduler",
    "daemonset/node-executor",
];

const NAMESPACE: &str = "podwright-system";
const OVERLAY: &str = "k8s/overlays/test-cluster";

/// The tag that the overlay names; it is replaced by the content's hash, so that new content is rolled out.
const TAG: &str = ":dev";

/// A request that only our webhook refuses in these words.
const PROBE: &str = "apiVersion: apps.kruise.io/v1beta1
kind: ContainerRecreateRequest
metadata: {name: probe, namespace: default}
spec: {podName: '', containers: [{name: a}]}
";

/// Builds the services of the checkout at `root` and rolls them out.
pub(crate) async fn deploy(folders: &Folders, cluster: &Cluster, root: &Path) -> Result<()> {
    let started_at = Instant::now();
    ensure!(
        root.join(OVERLAY).is_dir(),
        "{} is not a checkout of Podwright: it has no {OVERLAY}",
        root.display()
    );
    say("building the services (release; minutes the first time) …");
    build(root).await?;
    let mut manifests = cluster
        .kubectl(["kustomize".as_ref(), root.join(OVERLAY).as_os_str()])
        .await?;
    for service in SERVICES {
        let binary = target_folder(root).join("release").join(service);
        let content = std::fs::read(&binary)
            .with_context(|| format!("failed to read {}", binary.display()))?;
        let tag: String = Sha256::digest(&content)
            .iter()
            .take(6)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let name = format!("localhost/podwright/{service}");
        let image = from_binary(folders, &format!("{name}:{tag}"), &binary, &[]).await?;
        cluster.load(&image).await?;
        manifests = manifests.replace(&format!("{name}{TAG}"), &format!("{name}:{tag}"));
    }
    say("applying the manifests …");
    cluster.apply(&manifests).await?;
    for workload in WORKLOADS {
        say(format_args!("waiting for {workload} …"));
        let arguments = [
            "rollout",
            "status",
            "-n",
            NAMESPACE,
            workload,
            "--timeout",
            "180s",
        ];
        cluster.kubectl(arguments).await?;
    }
    wait_for_webhook(folders, cluster).await?;
    let seconds = started_at.elapsed().as_secs_f64();
    say(format_args!("Podwright is deployed ({seconds:.1} s)"));
    Ok(())
}

async fn build(root: &Path) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo
        .args(["build", "--release", "--locked"])
        .current_dir(root);
    for service in SERVICES {
        cargo.args(["-p", service]);
    }
    as_if_called_by_hand(&mut cargo);
    let status = cargo.status().await.context("failed to start cargo")?;
    if !status.success() {
        bail!("the services do not build");
    }
    Ok(())
}

fn target_folder(root: &Path) -> std::path::PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into)
}

/// Ready pods are not enough: the API server has to have our CA and the endpoints.
async fn wait_for_webhook(folders: &Folders, cluster: &Cluster) -> Result<()> {
    until(
        "our webhook to answer",
        Duration::from_secs(60),
        async || {
            let mut create = kubectl::command(folders, &cluster.programs)?;
            create.args(["create", "--dry-run=server", "-f", "-"]);
            let answer = output_of(&mut create, PROBE).await;
            Ok(answer.is_err_and(|error| format!("{error:#}").contains("spec.podName: is empty")))
        },
    )
    .await
}

//! What can be recreated besides the containers of an ordinary pod, and what cannot.

use anyhow::{Context, Result, ensure};
use cluster::Cluster;
use e2e::{
    Instance, Look, PATIENCE, PodPlan, Space, in_space, our_cluster, spec, state_of, wait_for,
};
use kube::ResourceExt;
use serde_json::json;

#[tokio::test]
async fn a_native_sidecar_is_recreated_and_an_ordinary_init_container_is_refused() {
    in_space("sidecar", async |space| {
        let plan = PodPlan::new("web")
            .init_container("setup", "true")
            .sidecar_with_hook("proxy", "echo hook >> /shared/log")
            .container("main");
        let pod = space.start(&plan).await?;
        let (proxy, main) = (Instance::of(&pod, "proxy")?, Instance::of(&pod, "main")?);
        space.recreate("side", "web", &["proxy"]).await?;
        let request = space.wait_completed("side").await?;
        let state = state_of(&request, "proxy").context("it is in the list")?;
        assert_eq!(
            (state.phase.as_str(), state.is_killed),
            ("Succeeded", Some(true))
        );
        let written = json!(request.spec.containers[0]);
        assert_eq!(
            written,
            json!({
                "name": "proxy",
                "preStop": { "exec": { "command": ["sh", "-c", "echo hook >> /shared/log"] } },
                "statusContext": {
                    "containerID": proxy.container_id, "restartCount": proxy.restart_count,
                },
            })
        );
        let new = space.instance("web", "proxy").await?;
        assert_ne!(new.container_id, proxy.container_id);
        assert_eq!(new.restart_count, proxy.restart_count + 1);
        assert_eq!(space.instance("web", "main").await?, main);
        assert_eq!(space.count_lines("web", "main", "hook").await?, 1);
        let (told_of, select) = (
            "jsonpath={.items[*].involvedObject.fieldPath}",
            "reason=Killing",
        );
        let words = [
            "-n",
            &space.name,
            "get",
            "events",
            "--field-selector",
            select,
            "-o",
            told_of,
        ];
        wait_for("the event of the stop", PATIENCE, async || {
            let told = e2e::kubectl(&words, "").await?;
            Ok(Look::is(told == "spec.initContainers{proxy}", told))
        })
        .await?;

        let setup = spec("web", &["setup"]);
        let refused = space.try_request("setup", setup).await?.unwrap_err();
        assert!(
            refused
                .message
                .contains("setup is an init container; only containers and native sidecars"),
            "{refused}"
        );
        Ok(())
    })
    .await;
}

/// A pod that the kubelet has from a file: its mirror in the API has another uid than the node knows.
#[tokio::test]
async fn a_container_of_a_static_pod_is_recreated() -> Result<()> {
    let Some(cluster) = our_cluster()? else {
        cluster::say("skipped: static pods are put on nodes of the test cluster only");
        return Ok(());
    };
    in_space("static", async |space| {
        let node = cluster.nodes()?.into_iter().next().context("no node")?;
        let file = cluster
            .static_pods(&node)?
            .join(format!("{}.json", space.name));
        let mut manifest = PodPlan::new("web").container("main").manifest();
        manifest["metadata"]["namespace"] = json!(space.name);
        tokio::fs::write(&file, manifest.to_string()).await?;
        let end = recreate_static(space, &cluster, &format!("web-{node}"), &node).await;
        tokio::fs::remove_file(&file).await?;
        end
    })
    .await;
    Ok(())
}

async fn recreate_static(space: &Space, cluster: &Cluster, pod: &str, node: &str) -> Result<()> {
    let mirror = space.wait_ready(pod).await?;
    let main = Instance::of(&mirror, "main")?;
    space.recreate("once", pod, &["main"]).await?;
    let request = space.wait_completed("once").await?;
    let state = state_of(&request, "main").context("it is in the list")?;
    ensure!(state.phase == "Succeeded", "{state:?}");
    let uid = request.labels().get(model::labels::CRR_POD_UID).cloned();
    ensure!(
        uid == mirror.uid(),
        "the label is the mirror's uid: {uid:?}"
    );
    let new = space.instance(pod, "main").await?;
    ensure!(new.container_id != main.container_id, "{new:?}");
    ensure!(new.restart_count == main.restart_count + 1, "{new:?}");
    let stops = cluster.stops_of(node, main.runtime_id())?;
    ensure!(stops == 1, "stopped {stops} times");
    Ok(())
}

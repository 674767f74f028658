//! What a launch needs is broken at its levels: the order holds, and the launch ends.
//!
//! That breaks what other launches need, so each runs alone: see `.config/nextest.toml`.

use std::time::Duration;

use anyhow::{Context, Result};
use cluster::Cluster;
use e2e::{Installation, Look, Ordered, PATIENCE, Space, in_space, our_cluster, wait_for};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::sync::Mutex;

/// Under `cargo test` the tests of a file run at once; broken things are broken one at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

/// A leader's lease has to run out before another leads.
const UNTIL_ANOTHER_LEADS: Duration = Duration::from_secs(90);

#[tokio::test]
async fn the_manager_is_killed_at_every_level() {
    let _alone = ALONE.lock().await;
    if our_cluster()
        .expect("the cluster's state can be read")
        .is_none()
    {
        cluster::say("skipped: things are broken on the test cluster only");
        return;
    }
    in_space("launch-kill", async |space| {
        let services = Installation::new(&space.client);
        services.wait_whole().await?;
        let ordered = Ordered::new("web")
            .by_place()
            .probed("a", None)
            .probed("b", None)
            .probed("c", None);
        space.create_ordered(&ordered).await?;
        let mut begun = Vec::new();
        for name in ["a", "b", "c"] {
            begun.push(name);
            wait_begun(space, &begun).await?;
            let leader = services.leader("barrier-manager").await?;
            services.kill_pod(&leader).await?;
            space.let_up("web", name).await?;
        }
        space.wait_ready("web").await?;
        space.wait_launched("web").await?;
        services.wait_whole().await
    })
    .await;
}

#[tokio::test]
async fn the_api_server_is_away_while_a_level_comes_up() {
    let _alone = ALONE.lock().await;
    let Some(cluster) = our_cluster().expect("the cluster's state can be read") else {
        cluster::say("skipped: things are broken on the test cluster only");
        return;
    };
    in_space("launch-away", async |space| {
        let services = Installation::new(&space.client);
        services.wait_whole().await?;
        let ordered = Ordered::new("web")
            .by_place()
            .probed("a", None)
            .container("b", None)
            .container("c", None);
        space.create_ordered(&ordered).await?;
        wait_begun(space, &["a"]).await?;
        let pod = space.pods().get("web").await?;
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        cluster.kill("kube-apiserver").await?;
        // Nobody can be told of it now.
        let up = let_up_on_node(
            &cluster,
            &node.context("a running pod has a node")?,
            &pod,
            "a",
        )
        .await;
        cluster.start("kube-apiserver").await?;
        up?;
        wait_begun(space, &["a", "b", "c"]).await?;
        space.wait_ready("web").await?;
        space.wait_launched("web").await?;
        services.wait_whole().await
    })
    .await;
}

/// Lets a probed container be ready, without the API server.
async fn let_up_on_node(cluster: &Cluster, node: &str, pod: &Pod, container: &str) -> Result<()> {
    let uid = pod.uid().context("a pod has a uid")?;
    let file = format!(
        "/var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~empty-dir/shared/up-{container}"
    );
    cluster.run_on(node, &["touch", &file]).await.map(drop)
}

/// Waits until these containers have begun, in that order, and no other.
async fn wait_begun(space: &Space, expected: &[&str]) -> Result<()> {
    let what = format!("{expected:?} to have begun");
    wait_for(&what, PATIENCE + UNTIL_ANOTHER_LEADS, async || {
        let log = space.log("web", "a").await?;
        let begun: Vec<_> = log.lines().collect();
        Ok(Look::is(begun == expected, format!("{begun:?}")))
    })
    .await
}

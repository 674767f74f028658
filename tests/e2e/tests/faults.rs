//! Processes and the bus are broken in the middle of a recreation; it ends well, and nothing is stopped twice.
//!
//! These tests break what all others need, so each runs alone: see `.config/nextest.toml`. They run on the
//! test cluster only, where things can be broken and stops be counted.

use std::time::Duration;

use anyhow::{Context, Result};
use cluster::Cluster;
use e2e::{
    Installation, Instance, Look, PATIENCE, PodPlan, Space, in_space, kubectl, our_cluster,
    phase_of, wait_for,
};
use k8s_api::crd::ContainerRecreateRequest;
use tokio::sync::Mutex;

/// Under `cargo test` the tests of a file run at once; broken things are broken one at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

/// A leader's lease has to run out before another leads.
const UNTIL_ANOTHER_LEADS: Duration = Duration::from_secs(90);

/// Long enough to break something meanwhile.
const HOOK: &str = "echo begin >> /shared/log; sleep 4; echo end >> /shared/log";

/// A recreation whose preStop hook is running right now.
struct Midway<'a> {
    space: &'a Space,
    services: Installation,
    cluster: &'a Cluster,
    node: String,
    old: Instance,
}

async fn midway(
    case: &str,
    break_something: impl AsyncFnOnce(&Midway<'_>) -> Result<()>,
) -> Result<()> {
    let _alone = ALONE.lock().await;
    let Some(cluster) = our_cluster()? else {
        cluster::say("skipped: things are broken on the test cluster only");
        return Ok(());
    };
    in_space(case, async |space| {
        let services = Installation::new(&space.client);
        services.wait_whole().await?;
        let plan = PodPlan::new("web")
            .container_with_hook("main", HOOK)
            .container("observer");
        let pod = space.start(&plan).await?;
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let midway = Midway {
            space,
            services: services.clone(),
            cluster: &cluster,
            node: node.context("a running pod has a node")?,
            old: Instance::of(&pod, "main")?,
        };
        space.recreate("broken", "web", &["main"]).await?;
        space.wait_line("web", "observer", "begin").await?;
        break_something(&midway).await?;
        midway.ends_well().await?;
        services.wait_whole().await
    })
    .await;
    Ok(())
}

impl Midway<'_> {
    /// The request succeeds, and the old instance was stopped once.
    async fn ends_well(&self) -> Result<()> {
        let ended = self
            .space
            .wait_completed_within("broken", UNTIL_ANOTHER_LEADS);
        check_succeeded(&ended.await?);
        let new = self.space.instance("web", "main").await?;
        assert_eq!(new.restart_count, self.old.restart_count + 1);
        assert_ne!(new.container_id, self.old.container_id);
        assert_eq!(self.stops(&self.old)?, 1, "of the old instance");
        assert_eq!(self.stops(&new)?, 0, "of the new instance");
        Ok(())
    }

    fn stops(&self, instance: &Instance) -> Result<usize> {
        self.cluster.stops_of(&self.node, instance.runtime_id())
    }
}

fn check_succeeded(request: &ContainerRecreateRequest) {
    let status = request.status.clone().unwrap_or_default();
    assert_eq!(phase_of(request), "Completed");
    let phases = status
        .container_recreate_states
        .iter()
        .map(|state| state.phase.as_str());
    assert_eq!(phases.collect::<Vec<_>>(), ["Succeeded"], "{status:?}");
}

#[tokio::test]
async fn the_scheduler_that_leads_is_killed() -> Result<()> {
    midway("leader", async |midway| {
        let leader = midway.services.leader("crr-scheduler").await?;
        midway.services.kill_pod(&leader).await
    })
    .await
}

#[tokio::test]
async fn the_node_executor_is_killed() -> Result<()> {
    midway("executor", async |midway| {
        let executor = midway.services.executor_on(&midway.node).await?;
        midway.services.kill_pod(&executor).await
    })
    .await
}

#[tokio::test]
async fn the_bus_is_killed() -> Result<()> {
    midway("bus-killed", async |midway| {
        let servers = midway.services.pods_of("nats").await?;
        for server in servers
            .iter()
            .filter_map(|pod| pod.metadata.name.as_deref())
        {
            midway.services.kill_pod(server).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_bus_is_away_until_the_container_is_back() -> Result<()> {
    midway("bus-away", async |midway| {
        midway.services.scale_nats(0).await?;
        // The node goes on alone: it holds the order in its journal.
        let back = midway.space.wait_replaced("web", "main", &midway.old).await;
        midway.services.scale_nats(1).await?;
        back.map(drop)
    })
    .await
}

#[tokio::test]
async fn the_container_runtime_is_restarted() -> Result<()> {
    midway("runtime", async |midway| {
        let runtime = format!("{}/containerd", midway.node);
        midway.cluster.restart(&runtime).await
    })
    .await
}

#[tokio::test]
async fn a_request_says_that_its_node_does_not_answer_and_ends_well_when_it_does() -> Result<()> {
    let _alone = ALONE.lock().await;
    if our_cluster()?.is_none() {
        cluster::say("skipped: things are broken on the test cluster only");
        return Ok(());
    }
    in_space("silent", async |space| {
        let services = Installation::new(&space.client);
        services.wait_whole().await?;
        let pod = space.start(&PodPlan::new("web").container("main")).await?;
        let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
        services.run_executors(false).await?;
        space.recreate("silent", "web", &["main"]).await?;
        let words = format!("node {node} has not answered since");
        let told = space
            .wait_request("silent", &words, Duration::from_secs(15), |request| {
                format!("{:?}", request.status).contains(&words)
            })
            .await;
        services.run_executors(true).await?;
        told?;
        let request = space.wait_completed("silent").await?;
        check_succeeded(&request);
        services.wait_whole().await
    })
    .await;
    Ok(())
}

/// The CRD as it is installed.
const DEFINITION: &str =
    include_str!("../../../k8s/crds/apps.kruise.io_containerrecreaterequests.yaml");
const DEFINITION_NAME: &str = "containerrecreaterequests.apps.kruise.io";

/// Waits until a request can be read as v1alpha1, for which it has to be converted.
async fn wait_converted(space: &Space, request: &str) -> Result<()> {
    wait_for("the request as v1alpha1", PATIENCE, async || {
        let request = space.requests_as("v1alpha1").get(request).await?;
        let phase = &request.data["status"]["phase"];
        Ok(Look::is(phase == "Completed", phase))
    })
    .await
}

#[tokio::test]
async fn requests_are_converted_without_the_bus_and_after_the_ca_was_lost() -> Result<()> {
    let _alone = ALONE.lock().await;
    if our_cluster()?.is_none() {
        cluster::say("skipped: things are broken on the test cluster only");
        return Ok(());
    }
    in_space("convert", async |space| {
        let services = Installation::new(&space.client);
        services.wait_whole().await?;
        space.start(&PodPlan::new("web").container("main")).await?;
        space.recreate("one", "web", &["main"]).await?;
        space.wait_completed("one").await?;
        services.scale_nats(0).await?;
        let without_bus = wait_converted(space, "one").await;
        let no_ca = r#"{"spec":{"conversion":{"webhook":{"clientConfig":{"caBundle":null}}}}}"#;
        let take_ca = ["patch", "crd", DEFINITION_NAME, "--type=merge", "-p", no_ca];
        let taken = kubectl(&take_ca, "").await;
        let with_new_ca = wait_ca().await;
        let converted = wait_converted(space, "one").await;
        services.scale_nats(1).await?;
        without_bus?;
        taken?;
        with_new_ca?;
        converted?;
        services.wait_whole().await
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn a_definition_that_comes_late_gets_the_ca_and_is_served() -> Result<()> {
    let _alone = ALONE.lock().await;
    if our_cluster()?.is_none() {
        cluster::say("skipped: things are broken on the test cluster only");
        return Ok(());
    }
    in_space("late", async |space| {
        let services = Installation::new(&space.client);
        services.wait_whole().await?;
        space.start(&PodPlan::new("web").container("main")).await?;
        kubectl(&["delete", "crd", DEFINITION_NAME], "").await?;
        kubectl(&["apply", "--server-side", "-f", "-"], DEFINITION).await?;
        wait_ca().await?;
        services.wait_whole().await?;
        let created = wait_for("a request to be taken", PATIENCE, async || {
            let request = space.recreate("one", "web", &["main"]).await?;
            Ok(Look::Found(request))
        });
        created.await?;
        let request = space
            .wait_completed_within("one", UNTIL_ANOTHER_LEADS)
            .await;
        check_succeeded(&request?);
        wait_converted(space, "one").await
    })
    .await;
    Ok(())
}

/// Waits until admission has written its CA into the CRD.
async fn wait_ca() -> Result<()> {
    wait_for("our CA in the CRD", PATIENCE, async || {
        let path = "jsonpath={.spec.conversion.webhook.clientConfig.caBundle}";
        let bundle = kubectl(&["get", "crd", DEFINITION_NAME, "-o", path], "").await?;
        Ok(Look::is(!bundle.is_empty(), "there is none"))
    })
    .await
}

//! Recreating the same container again and again, and one that keeps crashing: no back-off is waited for.

use anyhow::{Context, Result};
use e2e::{PodPlan, Space, in_space, spec, state_of, wait_for};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, PostParams},
};
use model::labels;
use serde_json::json;

fn web() -> PodPlan {
    PodPlan::new("web").container("main")
}

/// How often the kubelet would have had to wait: each wait is longer than the one before.
const TIMES: i32 = 5;

fn nudge_of(pod: &Pod) -> Option<String> {
    pod.annotations().get(labels::NUDGE).cloned()
}

#[tokio::test]
async fn the_fifth_time_is_as_good_as_the_first() {
    in_space("again", async |space| {
        space.start(&web()).await?;
        for count in 1..=TIMES {
            let name = format!("restart-{count}");
            space.recreate(&name, "web", &["main"]).await?;
            let request = space.wait_completed(&name).await?;
            let state = state_of(&request, "main").expect("it is in the list");
            assert_eq!((&*state.phase, state.is_killed), ("Succeeded", Some(true)));
            let pod = space.pods().get("web").await?;
            let status = &pod
                .status
                .as_ref()
                .and_then(|status| status.container_statuses.clone());
            let main = status
                .as_deref()
                .and_then(<[_]>::first)
                .context("no status")?
                .clone();
            assert_eq!(main.restart_count, count);
            let last = main.last_state.and_then(|state| state.terminated);
            let last = last.context("the last instance's end is not told")?;
            // A lie would be ContainerStatusUnknown with exit code 137 and no times.
            assert_eq!(
                (last.exit_code, last.reason.as_deref()),
                (0, Some("Completed"))
            );
            // The kubelet lets nobody wait for a first restart; nothing is dropped for it.
            assert_eq!(nudge_of(&pod).is_some(), count > 1, "restart {count}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_back_off_that_is_to_be_respected_is() {
    in_space("respect", async |space| {
        space.start(&web()).await?;
        space.recreate("first", "web", &["main"]).await?;
        space.wait_completed("first").await?;
        let second: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "ContainerRecreateRequest",
            "metadata": {
                "name": "second",
                "annotations": { labels::BACK_OFF: labels::BACK_OFF_RESPECT },
            },
            "spec": spec("web", &["main"]),
        }))?;
        let requests = space.raw_requests();
        requests.create(&PostParams::default(), &second).await?;
        let request = space.wait_completed("second").await?;
        assert_eq!(
            state_of(&request, "main").expect("listed").phase,
            "Succeeded"
        );
        assert_eq!(nudge_of(&space.pods().get("web").await?), None);
        Ok(())
    })
    .await;
}

/// Waits until the kubelet lets a container wait.
async fn wait_backing_off(space: &Space, pod: &str) -> Result<()> {
    let pods: Api<Pod> = space.pods();
    wait_for("CrashLoopBackOff", e2e::PATIENCE, async || {
        let status = pods.get(pod).await?.status.unwrap_or_default();
        let statuses = status.container_statuses.unwrap_or_default();
        let waiting = statuses
            .into_iter()
            .find_map(|status| status.state?.waiting);
        let reason = waiting
            .and_then(|waiting| waiting.reason)
            .unwrap_or_default();
        Ok(e2e::Look::is(reason == "CrashLoopBackOff", reason))
    })
    .await
}

#[tokio::test]
async fn a_crash_looping_container_is_brought_back_by_force() {
    in_space("crash", async |space| {
        // Crashes until it finds what it needs.
        let command = "[ -e /shared/cure ] || exit 1; trap 'exit 0' TERM; tail -f /dev/null & wait";
        let plan = PodPlan::new("web")
            .container_running("main", command)
            .container("helper");
        space.create_pod(&plan).await?;
        wait_backing_off(space, "web").await?;
        let cure = [
            "-n",
            &space.name,
            "exec",
            "web",
            "-c",
            "helper",
            "--",
            "touch",
            "/shared/cure",
        ];
        e2e::kubectl(&cure, "").await?;
        let mut wanted = spec("web", &["main"]);
        wanted["strategy"] = json!({ "forceRecreate": true });
        space.request("forced", wanted).await?;
        let request = space.wait_completed("forced").await?;
        let state = state_of(&request, "main").expect("it is in the list");
        assert_eq!(state.phase, "Succeeded", "{state:?}");
        assert!(nudge_of(&space.pods().get("web").await?).is_some());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_container_that_will_not_come_back_ends_the_request() {
    in_space("never", async |space| {
        let plan = web().with("restartPolicy", json!("Never"));
        space.start(&plan).await?;
        space.recreate("once", "web", &["main"]).await?;
        let request = space.wait_completed("once").await?;
        let state = state_of(&request, "main").expect("it is in the list");
        assert_eq!((&*state.phase, state.is_killed), ("Failed", Some(true)));
        let message = state.message.as_deref().unwrap_or_default();
        assert!(message.contains("restartPolicy is Never"), "{message}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_native_sidecar_is_recreated_as_often_as_one_likes() {
    in_space("sidecar", async |space| {
        let sidecar = json!([{
            "name": "proxy", "image": "busybox", "imagePullPolicy": "IfNotPresent",
            "restartPolicy": "Always",
            "command": ["sh", "-c", "trap 'exit 0' TERM; tail -f /dev/null & wait"],
        }]);
        let pod = space.start(&web().with("initContainers", sidecar)).await?;
        for count in 1..=3 {
            let name = format!("restart-{count}");
            space.recreate(&name, "web", &["proxy"]).await?;
            let request = space.wait_completed(&name).await?;
            assert_eq!(
                state_of(&request, "proxy").expect("listed").phase,
                "Succeeded"
            );
        }
        let after = space.pods().get("web").await?;
        let status = after.status.clone().unwrap_or_default();
        let proxy = status.init_container_statuses.unwrap_or_default();
        assert_eq!(proxy.first().map(|status| status.restart_count), Some(3));
        let main = |pod| e2e::Instance::of(pod, "main");
        assert_eq!(main(&after)?, main(&pod)?, "its neighbour is untouched");
        Ok(())
    })
    .await;
}

//! What a ContainerRecreateRequest does to a pod that nothing else happens to.

use anyhow::{Context, Result};
use e2e::{Instance, PodPlan, Space, in_space, kubectl, phase_of, spec, state_of};
use k8s_api::crd::ContainerRecreateRequest;
use kube::ResourceExt;
use model::labels;
use serde_json::{Value, json};

/// Two containers that end at once when asked to.
fn pair() -> PodPlan {
    PodPlan::new("pair")
        .container("main")
        .container("neighbour")
}

fn states(request: &ContainerRecreateRequest) -> Value {
    let status = request.status.clone().unwrap_or_default();
    json!(status.container_recreate_states)
}

fn succeeded(container: &str) -> Value {
    json!({ "name": container, "phase": "Succeeded", "isKilled": true })
}

/// A manifest as its author keeps it, with the largest numbers that Kubernetes can tell.
#[tokio::test]
async fn a_manifest_may_be_applied_twice_and_hold_any_number() {
    in_space("apply", async |space| {
        space.start(&PodPlan::new("web").container("main")).await?;
        let manifest = json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ContainerRecreateRequest",
            "metadata": { "name": "long" },
            "spec": {
                "podName": "web", "containers": [{ "name": "main" }],
                "strategy": { "terminationGracePeriodSeconds": i64::MAX },
                "activeDeadlineSeconds": i64::MAX, "ttlSecondsAfterFinished": i32::MAX,
            },
        });
        let words = ["-n", &space.name, "apply", "-f", "-"];
        kubectl(&words, &manifest.to_string()).await?;
        let request = space.wait_completed("long").await?;
        let state = state_of(&request, "main").context("it is in the list")?;
        assert_eq!(state.phase, "Succeeded", "{state:?}");
        let again = kubectl(&words, &manifest.to_string()).await?;
        assert!(
            again.contains("unchanged") || again.contains("configured"),
            "{again}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_named_container_is_another_one_and_its_neighbour_the_same() {
    in_space("recreate", async |space| {
        let pod = space.start(&pair()).await?;
        let (main, neighbour) = (
            Instance::of(&pod, "main")?,
            Instance::of(&pod, "neighbour")?,
        );
        space.recreate("once", "pair", &["main"]).await?;
        let request = space.wait_completed("once").await?;

        let after = space.pods().get("pair").await?;
        assert_eq!(after.uid(), pod.uid());
        let new = Instance::of(&after, "main")?;
        assert_ne!(new.container_id, main.container_id);
        assert_eq!(new.restart_count, main.restart_count + 1);
        assert!(new.is_ready);
        assert_eq!(Instance::of(&after, "neighbour")?, neighbour);

        assert_eq!(phase_of(&request), "Completed");
        assert_eq!(states(&request), json!([succeeded("main")]));
        let status = request.status.clone().unwrap_or_default();
        assert_eq!(status.message, None);
        let completed_at = status.completion_time.expect("it has ended").0;
        let created_at = request.creation_timestamp().expect("it was created").0;
        assert!(completed_at >= created_at, "{completed_at} {created_at}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn admission_writes_labels_defaults_and_the_instance_into_a_request() {
    in_space("inject", async |space| {
        let hook = "echo hook >> /shared/log";
        let plan = PodPlan::new("web").container_with_hook("main", hook);
        let pod = space.start(&plan).await?;
        let main = Instance::of(&pod, "main")?;
        let request = space.recreate("inject", "web", &["main"]).await?;

        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let label = |name: &str| request.labels().get(name).cloned();
        assert_eq!(label(labels::CRR_POD_NAME).as_deref(), Some("web"));
        assert_eq!(label(labels::CRR_POD_UID), pod.uid());
        assert_eq!(label(labels::CRR_NODE_NAME), node);
        assert_eq!(label(labels::CRR_ACTIVE).as_deref(), Some("true"));
        assert!(request.annotations().contains_key(labels::TRACE_PARENT));
        assert_eq!(
            json!(request.spec),
            json!({
                "podName": "web",
                "strategy": { "failurePolicy": "Fail", "terminationGracePeriodSeconds": 30 },
                "containers": [{
                    "name": "main",
                    "preStop": { "exec": { "command": ["sh", "-c", hook] } },
                    "statusContext": {
                        "containerID": main.container_id,
                        "restartCount": main.restart_count,
                    },
                }],
            })
        );
        space.wait_completed("inject").await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn two_containers_are_recreated_in_the_order_of_the_list() {
    in_space("order", async |space| {
        let hook = |name: &str| format!("echo {name} >> /shared/log");
        let plan = PodPlan::new("web")
            .container_with_hook("first", &hook("first"))
            .container_with_hook("second", &hook("second"))
            .container("observer");
        let pod = space.start(&plan).await?;
        space.recreate("both", "web", &["second", "first"]).await?;
        let request = space.wait_completed("both").await?;
        assert_eq!(
            states(&request),
            json!([succeeded("second"), succeeded("first")])
        );
        for container in ["first", "second"] {
            let new = space.instance("web", container).await?;
            assert_eq!(
                new.restart_count,
                Instance::of(&pod, container)?.restart_count + 1
            );
        }
        let log = space.log("web", "observer").await?;
        assert_eq!(log.lines().collect::<Vec<_>>(), ["second", "first"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_pre_stop_hook_runs_first_and_the_container_is_pending_until_it_ends() {
    in_space("hook", async |space| {
        let hook = "echo begin >> /shared/log; while [ ! -e /shared/go ]; do sleep 0.1; done; echo end >> /shared/log";
        let plan = PodPlan::new("web")
            .container_with_hook("main", hook)
            .container("observer")
            .with("terminationGracePeriodSeconds", json!(20));
        let pod = space.start(&plan).await?;
        let main = Instance::of(&pod, "main")?;
        space.recreate("hooked", "web", &["main"]).await?;
        space.wait_line("web", "observer", "begin").await?;
        let request = space.requests().get("hooked").await?;
        assert_eq!(phase_of(&request), "Recreating");
        assert_eq!(states(&request), json!([{ "name": "main", "phase": "Pending" }]));
        assert_eq!(space.instance("web", "main").await?, main);

        let touch = ["-n", &space.name, "exec", "web", "-c", "observer", "--", "touch", "/shared/go"];
        kubectl(&touch, "").await?;
        let request = space.wait_completed("hooked").await?;
        assert_eq!(states(&request), json!([succeeded("main")]));
        assert_eq!(space.count_lines("web", "observer", "end").await?, 1);
        assert_eq!(space.count_lines("web", "observer", "begin").await?, 1);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn two_requests_of_one_pod_complete_one_after_the_other() {
    in_space("queue", async |space| {
        let plan = PodPlan::new("pair")
            .container_with_hook("main", "sleep 2")
            .container("neighbour");
        let pod = space.start(&plan).await?;
        space.recreate("a", "pair", &["main"]).await?;
        space.recreate("b", "pair", &["neighbour"]).await?;
        let waits = "to wait for the other";
        space
            .wait_request("b", waits, e2e::PATIENCE, |request| {
                let status = request.status.as_ref();
                phase_of(request) == "Pending"
                    && status.is_some_and(|status| {
                        status
                            .message
                            .as_deref()
                            .is_some_and(|text| text.contains(" a "))
                    })
            })
            .await?;
        for (request, container) in [("a", "main"), ("b", "neighbour")] {
            let request = space.wait_completed(request).await?;
            let state = state_of(&request, container).expect("it is in the list");
            assert_eq!(json!(state), succeeded(container));
            let new = space.instance("pair", container).await?;
            assert_eq!(
                new.restart_count,
                Instance::of(&pod, container)?.restart_count + 1
            );
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn kubectl_shows_phase_pod_node_and_age() {
    in_space("columns", async |space| {
        let pod = space.start(&pair()).await?;
        space.recreate("shown", "pair", &["main"]).await?;
        space.wait_completed("shown").await?;
        let table = kubectl(&["-n", &space.name, "get", "crr"], "").await?;
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows[0], ["NAME", "PHASE", "POD", "NODE", "AGE"], "{table}");
        let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
        assert_eq!(
            rows[1][..4],
            ["shown", "Completed", "pair", node.as_str()],
            "{table}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn kubectl_explains_the_strategy() -> Result<()> {
    let text = kubectl(&["explain", "crr.spec.strategy"], "").await?;
    for field in [
        "failurePolicy",
        "orderedRecreate",
        "forceRecreate",
        "terminationGracePeriodSeconds",
        "unreadyGracePeriodSeconds",
        "minStartedSeconds",
    ] {
        assert!(text.contains(field), "{text}");
    }
    assert!(text.contains("How the containers are recreated"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_request_is_one_trace_through_all_three_services() {
    in_space("trace", async |space| {
        space.start(&pair()).await?;
        space.recreate("traced", "pair", &["main"]).await?;
        let request = space.wait_completed("traced").await?;
        let wanted = ["recreate", "order", "cri StopContainer"];
        let trace = e2e::wait_for_trace(&space.client, &request, &wanted).await?;
        let services: Vec<_> = trace.services().into_iter().collect();
        assert_eq!(services, ["admission", "crr-scheduler", "node-executor"]);
        let stop = trace.span("cri StopContainer").expect("it was waited for");
        assert_eq!(stop.service, "node-executor");
        e2e::wait_for(
            "the review of the label's removal",
            e2e::PATIENCE,
            async || {
                let trace = e2e::wait_for_trace(&space.client, &request, &wanted).await?;
                let reviews = trace.spans.iter().filter(|span| span.name == "review");
                let lines = trace.lines().join("\n");
                Ok(e2e::Look::is(reviews.count() == 2, lines))
            },
        )
        .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_request_leaves_after_its_time_to_live() {
    in_space("ttl", async |space: &Space| {
        space.start(&pair()).await?;
        let mut wanted = spec("pair", &["main"]);
        wanted["ttlSecondsAfterFinished"] = json!(1);
        space.request("short", wanted).await?;
        e2e::wait_for("the request to be gone", e2e::PATIENCE, async || {
            let request = space.requests().get_opt("short").await?;
            Ok(e2e::Look::is(request.is_none(), "it is there"))
        })
        .await?;
        let new = space.instance("pair", "main").await?;
        assert_eq!(new.restart_count, 1);
        Ok(())
    })
    .await;
}

//! `kubectl crr restart` of workloads, as a user runs it.

use anyhow::{Context, Result};
use e2e::{
    Instance, Look, PATIENCE, PodPlan, Space, crr, end, in_space, kubectl, start_crr, wait_for,
};
use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt,
    api::ListParams,
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use tokio::process::Command;

/// Becomes ready a while after it has begun.
fn plan() -> PodPlan {
    let probe = json!({ "exec": { "command": ["true"] }, "periodSeconds": 1 });
    PodPlan::new("web")
        .container("main")
        .changed(|main| main["readinessProbe"] = probe)
}

/// Makes a workload of such pods and waits until all are ready.
async fn start(space: &Space, kind: &str, replicas: usize, plan: &PodPlan) -> Result<Vec<Pod>> {
    let labels = json!({ "app": "web" });
    let mut workload = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": "web" },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": plan.manifest()["spec"] },
        },
    });
    if kind == "StatefulSet" {
        workload["spec"]["podManagementPolicy"] = json!("Parallel");
        workload["spec"]["serviceName"] = json!("web");
    }
    let apply = ["-n", &space.name, "apply", "-f", "-"];
    kubectl(&apply, &workload.to_string()).await?;
    wait_for("the pods to be ready", PATIENCE, async || {
        let pods = pods(space).await?;
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        Ok(if ready == replicas {
            Look::Found(pods)
        } else {
            Look::NotYet(format!("{ready} of {replicas} are ready"))
        })
    })
    .await
}

async fn pods(space: &Space) -> Result<Vec<Pod>> {
    let which = ListParams::default().labels("app=web");
    Ok(space.pods().list(&which).await?.items)
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let mut conditions = conditions.filter(|it| it.type_ == "Ready");
    conditions.any(|it| it.status == "True")
}

/// The pods whose container is another than before.
async fn restarted(space: &Space, before: &[Pod]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for pod in before {
        let now = space.pods().get(&pod.name_any()).await?;
        assert_eq!(now.uid(), pod.uid());
        if Instance::of(&now, "main")?.container_id != Instance::of(pod, "main")?.container_id {
            names.push(pod.name_any());
        }
    }
    Ok(names)
}

/// Watches the pods for ever: the most that were not ready at a time.
async fn watch_worst(space: &Space, worst: &mut usize) {
    let which = watcher::Config::default().labels("app=web");
    let changes = watcher(space.pods(), which).default_backoff();
    pin_mut!(changes);
    let mut unready = std::collections::BTreeSet::new();
    while let Some(change) = changes.next().await {
        if let Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) = change {
            if is_ready(&pod) {
                unready.remove(&pod.name_any());
            } else {
                unready.insert(pod.name_any());
            }
            *worst = unready.len().max(*worst);
        }
    }
}

/// The places of these lines among those printed.
fn places(output: &str, lines: &[&str]) -> Vec<usize> {
    let place = |line: &&str| output.lines().position(|printed| printed.starts_with(line));
    lines
        .iter()
        .map(|line| place(line).unwrap_or_else(|| panic!("no line {line:?} in\n{output}")))
        .collect()
}

#[tokio::test]
async fn a_deployment_never_loses_more_pods_than_allowed() {
    in_space("cliwork", async |space| {
        let before = start(space, "Deployment", 3, &plan()).await?;
        for (max, words) in [
            (1, &["restart", "deploy/web"][..]),
            (
                2,
                &["restart", "Deployment.apps/web", "--max-unavailable", "67%"],
            ),
        ] {
            let before = pods(space).await?;
            let mut worst = 0;
            let (code, output, errors) = tokio::select! {
                ended = crr(space, words) => ended?,
                () = watch_worst(space, &mut worst) => panic!("the watch has ended"),
            };
            assert_eq!(code, 0, "{output}{errors}");
            assert!(output.contains("\n3 of 3 pods restarted\n"), "{output}");
            assert!(output.contains("kubectl crr list -n"), "{output}");
            assert_eq!(restarted(space, &before).await?.len(), 3);
            assert!((1..=max).contains(&worst), "{worst} of {max}: {output}");
            let mut lines = output.lines();
            let at_once = lines
                .by_ref()
                .take_while(|line| !line.contains("ready again"));
            let begun = at_once.filter(|line| line.contains(": begun ("));
            assert_eq!(begun.count(), max, "{output}");
        }
        let requests = space.requests().list(&ListParams::default()).await?;
        let words: std::collections::BTreeSet<_> = requests
            .iter()
            .map(|it| it.labels()[model::labels::RESTART].clone())
            .collect();
        assert_eq!((requests.items.len(), words.len()), (6, 2));
        assert_eq!(before.len(), 3);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_statefulset_goes_from_the_highest_ordinal_down() {
    in_space("clists", async |space| {
        let before = start(space, "StatefulSet", 3, &plan()).await?;
        let dry = ["restart", "sts/web", "--dry-run=client"];
        let (code, output, errors) = crr(space, &dry).await?;
        assert_eq!(code, 0, "{errors}");
        let kind = "containerrecreaterequest.apps.kruise.io";
        let wanted = [2, 1, 0].map(|ordinal| format!("{kind}/web-{ordinal}-"));
        assert_eq!(
            places(&output, &wanted.each_ref().map(String::as_str)),
            [0, 1, 2]
        );
        let dry = ["restart", "sts/web", "--dry-run=server", "-o", "json"];
        let (code, output, errors) = crr(space, &dry).await?;
        assert_eq!(code, 0, "{errors}");
        let list: Value = serde_json::from_str(&output)?;
        assert_eq!(
            (&list["kind"], &list["items"][2]["spec"]["podName"]),
            (&json!("List"), &json!("web-0"))
        );
        assert!(restarted(space, &before).await?.is_empty());

        let (code, output, errors) = crr(space, &["restart", "sts/web"]).await?;
        assert_eq!(code, 0, "{output}{errors}");
        let places = places(
            &output,
            &[
                "web-2: begun",
                "web-2: ready again",
                "web-1: begun",
                "web-1: ready again",
                "web-0: begun",
                "web-0: ready again",
                "3 of 3",
            ],
        );
        assert!(places.is_sorted(), "{output}");
        assert_eq!(restarted(space, &before).await?.len(), 3);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_failure_stops_the_others_unless_they_are_to_keep_going() {
    in_space("clifail", async |space| {
        // The shared file outlives the container: the second container of web-2 ends at once.
        let main = "case $(hostname) in *-2) [ -e /shared/log ] && exit 1;; esac; \
                    trap 'exit 0' TERM; touch /shared/log; tail -f /dev/null & wait";
        let probe = json!({ "exec": { "command": ["true"] }, "periodSeconds": 1 });
        let plan = PodPlan::new("web")
            .container_running("main", main)
            .changed(|main| main["readinessProbe"] = probe);
        let before = start(space, "StatefulSet", 3, &plan).await?;
        let (code, output, errors) =
            crr(space, &["restart", "sts/web", "--deadline", "12s"]).await?;
        assert_eq!(code, 1, "{output}{errors}");
        assert!(
            output.contains("0 of 3 pods restarted, 1 failed, 2 not begun\n"),
            "{output}"
        );
        assert!(output.contains("\nnot begun: web-1, web-0\n"), "{output}");
        assert!(output.contains("web-2: FAILED"), "{output}");
        let untouched = &before[..2];
        assert!(restarted(space, untouched).await?.is_empty());

        let keep_going = [
            "restart",
            "sts/web",
            "--deadline",
            "12s",
            "--keep-going",
            "--max-unavailable",
            "2",
        ];
        let (code, output, errors) = crr(space, &keep_going).await?;
        assert_eq!(code, 1, "{output}{errors}");
        assert!(
            output.contains("\n2 of 3 pods restarted, 1 failed\n"),
            "{output}"
        );
        assert_eq!(restarted(space, untouched).await?, ["web-0", "web-1"]);

        // With room for one, the broken pod takes it all.
        let one = [
            "restart",
            "sts/web",
            "--deadline",
            "12s",
            "--keep-going",
            "--timeout",
            "10s",
        ];
        let (code, output, errors) = crr(space, &one).await?;
        assert_eq!(code, 3, "{output}{errors}");
        assert!(
            output.contains("waiting for room: not ready: web-2"),
            "{output}"
        );
        assert!(
            output.contains("\n0 of 3 pods restarted, 1 not ready again in time, 2 not begun\n"),
            "{output}"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn labels_choose_pods() {
    in_space("clilabel", async |space| {
        for name in ["a", "b", "c"] {
            space.start(&PodPlan::new(name).container("main")).await?;
        }
        let label = ["-n", &space.name, "label", "pod", "a", "b", "app=web"];
        kubectl(&label, "").await?;
        let all = space.pods().list(&ListParams::default()).await?.items;
        let (code, output, errors) =
            crr(space, &["restart", "-l", "app=web", "-o", "json"]).await?;
        assert_eq!(code, 0, "{output}{errors}");
        assert!(errors.contains("\n2 of 2 pods restarted\n"), "{errors}");
        let list: Value = serde_json::from_str(&output)?;
        let items = list["items"].as_array().context("a list")?;
        let phases: Vec<_> = items.iter().map(|item| &item["status"]["phase"]).collect();
        assert_eq!(phases, ["Completed", "Completed"]);
        assert_eq!(restarted(space, &all).await?, ["a", "b"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_wrong_command_restarts_nothing_and_ends_with_two() {
    in_space("cliwrong", async |space| {
        start(space, "Deployment", 1, &plan()).await?;
        for (words, told) in [
            (&["job/web"][..], "statefulset (sts)"),
            (&["deploy/"], "TYPE/NAME"),
            (&[], "--selector"),
            (&["deploy/web", "-l", "app=web"], "--selector"),
            (&["deploy/web", "--max-unavailable", "0"], "at least 1"),
            (&["deploy/other"], "deployment/other"),
            (&["sts/web"], "statefulset/web"),
            (
                &["deploy/web", "-c", "other"],
                "has no container other; it has main",
            ),
            (&["-l", "app=none"], "--selector: no pod with app=none"),
            (&["-l", "a b c"], "listing the pods"),
            (&["-l", " "], "--selector"),
        ] {
            let words = [&["restart"], words].concat();
            let (code, output, errors) = crr(space, &words).await?;
            assert_eq!(code, 2, "{words:?}: {output}{errors}");
            assert!(errors.contains(told), "{words:?}: {errors}");
        }
        let scale = ["-n", &space.name, "scale", "deploy/web", "--replicas=0"];
        kubectl(&scale, "").await?;
        wait_for("the pod to be gone", PATIENCE, async || {
            let left = pods(space).await?.len();
            Ok(Look::is(left == 0, left))
        })
        .await?;
        let (code, output, errors) = crr(space, &["restart", "deploy/web"]).await?;
        assert_eq!(code, 0, "{output}{errors}");
        assert!(
            output.contains("has no pod that can be restarted"),
            "{output}"
        );
        let requests = space.requests().list(&ListParams::default()).await?;
        assert!(requests.items.is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_interrupt_begins_no_more_and_leaves_what_has_begun() {
    in_space("cliint", async |space| {
        let plan = PodPlan::new("web").container_with_hook("main", "sleep 3");
        start(space, "StatefulSet", 2, &plan).await?;
        let child = start_crr(space, &["restart", "sts/web"])?;
        let pid = child.id().context("it runs")?.to_string();
        let name = wait_for("a request", PATIENCE, async || {
            let requests = space.requests().list(&ListParams::default()).await?;
            let first = requests.items.first().map(ResourceExt::name_any);
            Ok(first.map_or_else(|| Look::NotYet("none".to_owned()), Look::Found))
        })
        .await?;
        let killed = Command::new("kill").args(["-INT", &pid]).status().await?;
        assert!(killed.success());
        let (code, output, errors) = end(&child.wait_with_output().await?)?;
        assert_eq!(code, 130, "{output}{errors}");
        assert!(
            output.contains("in flight, and going on: web-1\nnot begun: web-0\n"),
            "{output}"
        );
        space.wait_completed(&name).await?;
        let requests = space.requests().list(&ListParams::default()).await?;
        assert_eq!(requests.items.len(), 1);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_watch_without_rights_ends_with_two_and_says_which_are_missing() {
    in_space("clirights", async |space| {
        space.start(&PodPlan::new("web").container("main")).await?;
        let config = kubectl(&["config", "view", "--raw", "--minify", "-o", "json"], "").await?;
        let mut config: Value = serde_json::from_str(&config)?;
        config["users"][0]["user"]["as"] =
            json!(format!("system:serviceaccount:{}:default", space.name));
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, config.to_string())?;
        let kubeconfig = path.to_str().context("a path of letters")?;
        let restart = [
            "--kubeconfig",
            kubeconfig,
            "restart",
            "web",
            "-c",
            "main",
            "--wait",
        ];
        let (code, output, errors) = crr(space, &restart).await?;
        assert_eq!(code, 2, "{output}{errors}");
        let told = "cannot create resource \"containerrecreaterequests\"";
        assert!(errors.contains(told), "{errors}");

        let creator = [
            "-n",
            &space.name,
            "create",
            "role",
            "creator",
            "--verb=create",
            "--resource=containerrecreaterequests.apps.kruise.io",
        ];
        kubectl(&creator, "").await?;
        let account = format!("--serviceaccount={}:default", space.name);
        let bind = [
            "-n",
            &space.name,
            "create",
            "rolebinding",
            "creator",
            "--role=creator",
            &account,
        ];
        kubectl(&bind, "").await?;
        let (code, output, errors) = crr(space, &restart).await?;
        assert_eq!(code, 2, "{output}{errors}");
        let told =
            "missing rights: this needs list and watch on containerrecreaterequests.apps.kruise.io";
        assert!(errors.contains(told), "{errors}");
        Ok(())
    })
    .await;
}

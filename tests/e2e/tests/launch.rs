//! Container launch priority: containers start level by level, whoever owns the pod.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::{
    Instance, Look, Ordered, PATIENCE, SHARED, Space, crr, in_space, kubectl, started_at, wait_for,
    wait_for_trace,
};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use model::labels;
use serde_json::{Value, json};

/// Main last, though first in the pod.
fn three_levels(name: &str) -> Ordered {
    Ordered::new(name)
        .container("main", None)
        .container("proxy", Some("10"))
        .container("logger", Some("-5"))
        .container("mid", Some("5"))
}

const THREE_LEVELS: [&str; 4] = ["proxy", "mid", "main", "logger"];

/// The containers have started in that order, by their own word and by the kubelet's.
async fn check_order(space: &Space, pod: &str, expected: &[&str]) -> Result<Pod> {
    space.wait_launched(pod).await?;
    let ready = space.wait_ready(pod).await?;
    let log = space.log(pod, expected[0]).await?;
    assert_eq!(log.lines().collect::<Vec<_>>(), expected);
    let times = expected.iter().map(|name| started_at(&ready, name));
    let times = times.collect::<Result<Vec<_>>>()?;
    assert!(times.is_sorted(), "{times:?}");
    Ok(ready)
}

fn maps(space: &Space) -> Api<ConfigMap> {
    Api::namespaced(space.client.clone(), &space.name)
}

#[tokio::test]
async fn a_bare_pod_with_priorities_starts_from_the_highest_down() {
    in_space("launch", async |space| {
        space.create_ordered(&three_levels("web")).await?;
        let pod = check_order(space, "web", &THREE_LEVELS).await?;
        // One variable was added to each, the last.
        let spec = pod.spec.as_ref().context("a spec")?;
        for container in &spec.containers {
            let variables = container.env.as_deref().unwrap_or_default();
            let given = if container.name == "main" { 1 } else { 2 };
            assert_eq!(variables.len(), given + 1, "{variables:?}");
            let last = variables.last().context("a variable")?;
            assert_eq!(last.name, "KRUISE_CONTAINER_BARRIER");
        }
        let map = maps(space).get("web-barrier").await?;
        let keys: Vec<_> = map.data.iter().flat_map(|data| data.keys()).collect();
        assert_eq!(keys, ["p_-5", "p_0", "p_10", "p_5"]);
        let trace = wait_for_trace(&space.client, &pod, &["review", "launch"]).await?;
        let levels = trace.spans.iter().filter(|span| span.name == "level");
        assert_eq!(levels.count(), 4, "{}", trace.lines().join("\n"));
        let owner = &map.owner_references()[0];
        assert_eq!(
            (Some(&owner.uid), &*owner.kind),
            (pod.uid().as_ref(), "Pod")
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_level_is_up_when_all_its_containers_are_ready() {
    in_space("launch-ready", async |space| {
        let ordered = Ordered::new("web")
            .by_place()
            .probed("first", None)
            .container("second", None);
        space.create_ordered(&ordered).await?;
        space.wait_line("web", "first", "first").await?;
        // Up and not ready: the next waits, as its status says.
        let waits = wait_for("the second to wait for its key", PATIENCE, async || {
            let pod = space.pods().get("web").await?;
            let statuses = pod.status.and_then(|status| status.container_statuses);
            let mut statuses = statuses.into_iter().flatten();
            let second = statuses.find(|status| status.name == "second");
            let waiting = second.and_then(|status| status.state?.waiting);
            let reason = waiting
                .and_then(|waiting| waiting.reason)
                .unwrap_or_default();
            Ok(Look::is(reason == "CreateContainerConfigError", reason))
        });
        waits.await?;
        assert_eq!(space.log("web", "first").await?, "first\n");
        space.let_up("web", "first").await?;
        check_order(space, "web", &["first", "second"]).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn both_ways_to_ask_order_with_probes_and_without() {
    in_space("launch-ways", async |space| {
        let by_place = Ordered::new("place-plain")
            .by_place()
            .container("a", None)
            .container("b", None)
            .container("c", None);
        space.create_ordered(&by_place).await?;
        let probed = |container: &mut Value| {
            let probe = json!({ "exec": { "command": ["true"] }, "periodSeconds": 1 });
            container["readinessProbe"] = probe;
        };
        let by_number = Ordered::new("number-probed")
            .container("c", Some("-1"))
            .changed(probed)
            .container("b", None)
            .changed(probed)
            .container("a", Some("+1"))
            .changed(probed);
        space.create_ordered(&by_number).await?;
        for pod in ["place-plain", "number-probed"] {
            check_order(space, pod, &["a", "b", "c"]).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn pods_of_a_deployment_are_ordered() {
    in_space("launch-deploy", async |space| {
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
            "spec": {
                "replicas": 2, "selector": { "matchLabels": { "app": "web" } },
                "template": three_levels("web").template("web"),
            },
        });
        apply(space, &deployment).await?;
        let pods = wait_for("two pods", PATIENCE, async || {
            let pods = space
                .pods()
                .list(&ListParams::default().labels("app=web"))
                .await?;
            Ok(if pods.items.len() == 2 {
                Look::Found(pods.items)
            } else {
                Look::NotYet(format!("{} pods", pods.items.len()))
            })
        });
        for pod in pods.await? {
            check_order(space, &pod.name_any(), &THREE_LEVELS).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_stateful_sets_pod_of_the_same_name_is_ordered_again() {
    in_space("launch-sts", async |space| {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "db" },
            "spec": {
                "replicas": 1, "serviceName": "db", "selector": { "matchLabels": { "app": "db" } },
                "template": three_levels("db").template("db"),
            },
        });
        apply(space, &set).await?;
        let mut last = None;
        for _ in 0..2 {
            let what = "another pod of that name";
            let pod = wait_for(what, PATIENCE, async || {
                let pod = space.pods().get_opt("db-0").await?;
                Ok(match pod {
                    Some(pod) if pod.uid() != last => Look::Found(pod),
                    other => Look::NotYet(format!("{:?}", other.and_then(|pod| pod.uid()))),
                })
            });
            let uid = pod.await?.uid();
            check_order(space, "db-0", &THREE_LEVELS).await?;
            let map = maps(space).get("db-0-barrier").await?;
            assert_eq!(Some(&map.owner_references()[0].uid), uid.as_ref());
            last = uid;
            // At once, so that the old ConfigMap is still there when the new pod comes.
            let at_once = DeleteParams::default().grace_period(0);
            space.pods().delete("db-0", &at_once).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_recreated_container_waits_for_nothing_and_a_lost_map_comes_back() {
    in_space("launch-again", async |space| {
        space.create_ordered(&three_levels("web")).await?;
        let pod = check_order(space, "web", &THREE_LEVELS).await?;
        let lost = maps(space).get("web-barrier").await?;
        maps(space)
            .delete("web-barrier", &DeleteParams::default())
            .await?;
        let back = wait_for("the map to be back", PATIENCE, async || {
            let map = maps(space).get_opt("web-barrier").await?;
            Ok(match map {
                Some(map) if map.uid() != lost.uid() => Look::Found(map),
                other => Look::NotYet(format!("{:?}", other.and_then(|map| map.uid()))),
            })
        });
        assert_eq!(back.await?.data, lost.data);
        for name in ["proxy", "main"] {
            let old = Instance::of(&pod, name)?;
            let request = format!("again-{name}");
            space.recreate(&request, "web", &[name]).await?;
            space.wait_completed(&request).await?;
            let new = space.instance("web", name).await?;
            assert_eq!(new.restart_count, old.restart_count + 1);
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_crash_at_its_level_holds_the_next_back_until_it_is_up_again() {
    in_space("launch-crash", async |space| {
        let ordered = Ordered::new("web")
            .by_place()
            .crashing_once("first", None)
            .container("second", None);
        space.create_ordered(&ordered).await?;
        space.wait_line("web", "first", "first").await?;
        let crashed = wait_for("the second instance", PATIENCE, async || {
            let instance = space.instance("web", "first").await?;
            let count = instance.restart_count;
            Ok(Look::is(count == 1, format!("{count} restarts")))
        });
        crashed.await?;
        space.let_up("web", "first").await?;
        space.wait_launched("web").await?;
        space.wait_ready("web").await?;
        assert_eq!(space.log("web", "first").await?, "first\nfirst\nsecond\n");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_pod_deleted_in_mid_launch_leaves_nothing_behind_and_is_ordered_again() {
    in_space("launch-delete", async |space| {
        let ordered = Ordered::new("web")
            .by_place()
            .probed("first", None)
            .container("second", None);
        space.create_ordered(&ordered).await?;
        space.wait_line("web", "first", "first").await?;
        space
            .pods()
            .delete("web", &DeleteParams::default().grace_period(1))
            .await?;
        let gone = wait_for(
            "the pod and its ConfigMap to be gone",
            PATIENCE,
            async || {
                let pod = space.pods().get_opt("web").await?.map(|pod| pod.uid());
                let map = maps(space).get_opt("web-barrier").await?;
                let left = (pod, map.map(|map| map.data));
                Ok(Look::is(left == (None, None), format!("{left:?}")))
            },
        );
        gone.await?;
        space.create_ordered(&ordered).await?;
        space.wait_line("web", "first", "first").await?;
        space.let_up("web", "first").await?;
        check_order(space, "web", &["first", "second"]).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_leftover_that_a_finalizer_keeps_lets_nobody_through() {
    in_space("launch-held", async |space| {
        let ordered = Ordered::new("web")
            .by_place()
            .probed("first", None)
            .container("second", None);
        space.create_ordered(&ordered).await?;
        space.wait_line("web", "first", "first").await?;
        space.let_up("web", "first").await?;
        space.wait_launched("web").await?;
        let finalizers = |list: Value| json!({ "metadata": { "finalizers": list } });
        let hold = finalizers(json!(["example.com/hold"]));
        let patch = PatchParams::default();
        maps(space)
            .patch("web-barrier", &patch, &Patch::Merge(&hold))
            .await?;
        let at_once = DeleteParams::default().grace_period(0);
        space.pods().delete("web", &at_once).await?;
        space.create_ordered(&ordered).await?;
        let emptied = wait_for("the leftover to be emptied", PATIENCE, async || {
            let map = maps(space).get("web-barrier").await?;
            let keys = map.data.unwrap_or_default();
            Ok(Look::is(keys.is_empty(), format!("{keys:?}")))
        })
        .await;
        maps(space)
            .patch(
                "web-barrier",
                &patch,
                &Patch::Merge(&finalizers(json!(null))),
            )
            .await?;
        emptied?;
        // By its status: its predecessor's container of that name may still end.
        let begun = wait_for("the new pod's first to run", PATIENCE, async || {
            let pod = space.pods().get("web").await?;
            let started = started_at(&pod, "first");
            Ok(Look::is(started.is_ok(), format!("{started:?}")))
        });
        begun.await?;
        space.let_up("web", "first").await?;
        space.wait_launched("web").await?;
        space.wait_ready("web").await?;
        Ok(())
    })
    .await;
}

/// Adds a container to each pod that has barriers by then, so that our webhook has to be asked again. It is a policy's
/// expression that decides: a policy whose conditions did not hold the first time is not asked again itself.
fn late_adder(space: &Space) -> Value {
    let late = "JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{\
        name: 'late', image: 'busybox', imagePullPolicy: 'IfNotPresent', \
        command: ['sh', '-c', 'echo late >> /shared/log; tail -f /dev/null'], \
        volumeMounts: [Object.spec.containers.volumeMounts{name: 'shared', mountPath: '/shared'}]}}";
    let label = labels::LAUNCH_BARRIER;
    let is_due = format!(
        "has(object.metadata.labels) && '{label}' in object.metadata.labels \
         && !object.spec.containers.exists(container, container.name == 'late')"
    );
    let mutation = json!({ "expression": format!("{is_due} ? [{late}] : []") });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": { "name": space.name },
        "spec": {
            "reinvocationPolicy": "IfNeeded",
            "matchConstraints": {
                "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": space.name } },
                "resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"],
                }],
            },
            "mutations": [{ "patchType": "JSONPatch", "jsonPatch": mutation }],
        },
    })
}

#[tokio::test]
async fn a_container_that_is_added_after_our_review_has_its_level() {
    in_space("launch-late", async |space| {
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
            "metadata": { "name": space.name }, "spec": { "policyName": space.name },
        });
        let ordered = Ordered::new("web")
            .container("main", None)
            .container("proxy", Some("10"));
        apply(space, &late_adder(space)).await?;
        apply(space, &binding).await?;
        let launched = launch_with_late(space, &ordered).await;
        for kind in ["mutatingadmissionpolicybinding", "mutatingadmissionpolicy"] {
            kubectl(&["delete", kind, &space.name], "").await?;
        }
        let pod = launched?;
        let containers = pod.spec.context("a spec")?.containers;
        let late = containers.iter().find(|container| container.name == "late");
        let last = late.and_then(|container| container.env.as_ref()?.last());
        let source = last.and_then(|variable| variable.value_from.as_ref()?.config_map_key_ref.as_ref());
        assert_eq!(source.context("a barrier")?.key, "p_0");
        let log = space.log("web", "proxy").await?;
        let mut begun: Vec<_> = log.lines().collect();
        begun[1..].sort_unstable();
        assert_eq!(begun, ["proxy", "late", "main"]);
        Ok(())
    })
    .await;
}

/// Launches the pod once the policy that adds a container is in force.
async fn launch_with_late(space: &Space, ordered: &Ordered) -> Result<Pod> {
    let probe: Pod = serde_json::from_value(ordered.manifest())?;
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    wait_for("the policy to be in force", PATIENCE, async || {
        let made = space.pods().create(&dry_run, &probe).await?;
        let count = made.spec.map_or(0, |spec| spec.containers.len());
        Ok(Look::is(count == 3, format!("{count} containers")))
    })
    .await?;
    space.create_ordered(ordered).await?;
    space.wait_launched("web").await?;
    space.wait_ready("web").await
}

#[tokio::test]
async fn a_map_of_the_users_own_is_left_alone_and_told_of() {
    in_space("launch-foreign", async |space| {
        let own = json!({ "metadata": { "name": "web-barrier" }, "data": { "mine": "a" } });
        let own: ConfigMap = serde_json::from_value(own)?;
        maps(space).create(&Default::default(), &own).await?;
        space.create_ordered(&three_levels("web")).await?;
        let event = wait_event(space, "web", "LaunchBlocked").await?;
        let message = event.message.unwrap_or_default();
        assert!(message.contains("ConfigMap web-barrier"), "{message}");
        assert_eq!(maps(space).get("web-barrier").await?.data, own.data);
        maps(space)
            .delete("web-barrier", &DeleteParams::default())
            .await?;
        check_order(space, "web", &THREE_LEVELS).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_stuck_level_is_told_of_with_the_kubelets_reason() {
    in_space("launch-stuck", async |space| {
        let ordered = three_levels("web")
            .container("broken", Some("7"))
            .changed(|container| {
                container["image"] = json!("localhost/there-is-no-such-image");
                container["imagePullPolicy"] = json!("Never");
            });
        space.create_ordered(&ordered).await?;
        let event = wait_event(space, "web", "LaunchStuck").await?;
        let message = event.message.unwrap_or_default();
        for word in ["level p_7", "container broken", "ErrImageNeverPull"] {
            assert!(message.contains(word), "{word} in {message}");
        }
        assert_eq!(space.log("web", "proxy").await?, "proxy\n");
        let (code, why, errors) = crr(space, &["why", "pod/web"]).await?;
        assert_eq!(code, 0, "{errors}");
        for line in [
            "p_10: up (proxy)",
            "p_7: waiting (broken)",
            "broken: ErrImageNeverPull",
            "p_5: closed (mid)",
        ] {
            assert!(why.contains(line), "{line} in {why}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn wrong_priorities_are_refused_and_pods_without_levels_left_alone() {
    in_space("launch-refuse", async |space| {
        let value = |value: &str| {
            Ordered::new("web")
                .container("main", None)
                .container("proxy", Some(value))
        };
        let variable =
            |change: Value| value("1").changed(move |container| container["env"][1] = change);
        let from = json!({ "fieldRef": { "fieldPath": "metadata.name" } });
        for (wrong, word) in [
            (value("high"), "\"high\""),
            (value(""), "\"\""),
            (value("2147483648"), "from -2147483647 to 2147483647"),
            (
                variable(json!({ "name": "KRUISE_CONTAINER_PRIORITY", "valueFrom": from })),
                "valueFrom",
            ),
            (
                variable(json!({ "name": "KRUISE_CONTAINER_BARRIER", "value": "p_0" })),
                "KRUISE_CONTAINER_BARRIER",
            ),
            (
                variable(json!({ "name": "KRUISE_CONTAINER_BARRIER" })),
                "KRUISE_CONTAINER_BARRIER",
            ),
        ] {
            let refusal = space.create_ordered(&wrong).await;
            let message = format!("{:#}", refusal.expect_err("it is refused"));
            for word in [word, "container proxy"] {
                assert!(message.contains(word), "{word} in {message}");
            }
        }
        for (name, same) in [
            (
                "one",
                Ordered::new("one").by_place().container("main", None),
            ),
            (
                "equal",
                Ordered::new("equal")
                    .container("a", Some("3"))
                    .container("b", Some("3")),
            ),
        ] {
            let sent: Pod = serde_json::from_value(same.manifest())?;
            let made = space.create_ordered(&same).await?;
            let variables = |pod: &Pod| {
                let containers = pod.spec.as_ref().map(|spec| spec.containers.clone());
                let containers = containers.unwrap_or_default().into_iter();
                containers
                    .map(|container| container.env)
                    .collect::<Vec<_>>()
            };
            assert_eq!(variables(&made), variables(&sent), "{name}");
            assert!(!made.labels().contains_key(labels::LAUNCH_BARRIER));
            space.wait_ready(name).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn fifty_pods_at_once_all_complete() {
    in_space("launch-many", async |space| {
        let names: Vec<_> = (0..50).map(|index| format!("web-{index}")).collect();
        try_join_all(names.iter().map(async |name| {
            let grace = json!(1);
            let ordered = Ordered::new(name)
                .container("main", None)
                .container("proxy", Some("1"))
                .with("terminationGracePeriodSeconds", grace);
            space.create_ordered(&ordered).await
        }))
        .await?;
        let wanted = names.len();
        wait_for("all to be launched and ready", PATIENCE * 5, async || {
            let pods = space.pods().list(&ListParams::default()).await?.items;
            let done = pods.iter().filter(|pod| is_done(pod)).count();
            Ok(Look::is(done == wanted, format!("{done} of {wanted}")))
        })
        .await?;
        for pod in space.pods().list(&ListParams::default()).await?.items {
            let (proxy, main) = (started_at(&pod, "proxy")?, started_at(&pod, "main")?);
            assert!(proxy <= main, "{}: {proxy} and {main}", pod.name_any());
        }
        Ok(())
    })
    .await;
}

fn is_done(pod: &Pod) -> bool {
    let statuses = pod
        .status
        .iter()
        .flat_map(|status| &status.container_statuses);
    let ready = statuses.flatten().filter(|status| status.ready).count();
    let is_completed = pod.annotations().get(labels::LAUNCH_COMPLETED);
    ready == 2 && is_completed.is_some_and(|word| word == "true")
}

async fn apply(space: &Space, object: &Value) -> Result<()> {
    let words = ["-n", &space.name, "apply", "-f", "-"];
    kubectl(&words, &object.to_string()).await.map(drop)
}

/// The default setting is a minute.
async fn wait_event(space: &Space, pod: &str, reason: &str) -> Result<Event> {
    let events: Api<Event> = Api::namespaced(space.client.clone(), &space.name);
    let about = ListParams::default().fields(&format!("involvedObject.name={pod}"));
    wait_for(
        &format!("the event {reason}"),
        PATIENCE + Duration::from_secs(60),
        async || {
            let events = events.list(&about).await?;
            let mut ours = events.items.into_iter();
            let found = ours.find(|event| event.reason.as_deref() == Some(reason));
            Ok(found.map_or_else(|| Look::NotYet(format!("none, see {SHARED}")), Look::Found))
        },
    )
    .await
}

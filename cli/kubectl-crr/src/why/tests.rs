//! Pods and what is told of them.

use k8s_openapi::api::core::v1::Event;
use model::labels;
use serde_json::{Value, json};

use super::{Barriers, PodEvidence, PodStory, container::containers};

/// A second of the first minute of 2026.
fn at(second: u32) -> String {
    format!("2026-01-01T00:00:{second:02}Z")
}

fn running(id: &str, second: u32) -> Value {
    json!({ "containerID": id, "state": { "running": { "startedAt": at(second) } }, "ready": true })
}

fn ended(id: &str, exit_code: i32, from: u32, to: u32) -> Value {
    let reason = if exit_code == 0 { "Completed" } else { "Error" };
    json!({ "terminated": {
        "containerID": id, "exitCode": exit_code, "reason": reason,
        "startedAt": at(from), "finishedAt": at(to),
    }})
}

/// The status of container `app`.
fn app(status: &Value, last: &Value, restart_count: i32) -> Value {
    let mut status = status.clone();
    status["name"] = json!("app");
    status["image"] = json!("i");
    status["imageID"] = json!("i");
    status["restartCount"] = json!(restart_count);
    status["lastState"] = last.clone();
    status
}

fn pod(statuses: &Value) -> Value {
    json!({
        "metadata": { "name": "web", "namespace": "shop", "uid": "pod-1" },
        "spec": { "containers": [{ "name": "app" }] },
        "status": { "phase": "Running", "containerStatuses": statuses },
    })
}

/// A request that stopped instance `old` of container `app`; without `new` it has not ended.
fn request(name: &str, old: &str, new: Option<&str>) -> Value {
    let status = new.map(|new| {
        json!({
            "phase": "Completed",
            "completionTime": at(30),
            "containerRecreateStates": [{ "name": "app", "phase": "Succeeded", "isKilled": true }],
            "containerStatusSnapshot": [{ "name": "app", "containerID": new, "restartCount": 1, "ready": true }],
        })
    });
    let context = json!({ "containerID": old, "restartCount": 0 });
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("uid-{name}"), "creationTimestamp": at(10),
            "annotations": { labels::REQUESTED_BY: "jane" },
            "labels": if new.is_none() { json!({ labels::CRR_ACTIVE: "true" }) } else { json!({}) },
        },
        "spec": { "podName": "web", "containers": [{ "name": "app", "statusContext": context }] },
        "status": status.unwrap_or(json!({ "phase": "Recreating" })),
    })
}

/// The event of a request's stop of container `app`.
fn killing(request: &str, second: u32) -> Value {
    json!({
        "metadata": { "name": format!("crr-uid-{request}-killing-0") },
        "involvedObject": { "kind": "Pod", "name": "web", "fieldPath": "spec.containers{app}" },
        "reason": "Killing", "eventTime": format!("2026-01-01T00:00:{second:02}.500000Z"),
        "message": format!("Stopping container app by ContainerRecreateRequest {request}, requested by jane"),
    })
}

fn seen(pod: Value, requests: &[Value], events: &[Value]) -> PodEvidence {
    fn all<T: serde::de::DeserializeOwned>(values: &[Value]) -> Vec<T> {
        let values = values.iter().cloned();
        values
            .map(|value| serde_json::from_value(value).unwrap())
            .collect()
    }
    PodEvidence {
        pod: serde_json::from_value(pod).unwrap(),
        requests: all(requests),
        events: all(events),
        barriers: Barriers::Unknown,
    }
}

fn lines(seen: &PodEvidence) -> Vec<String> {
    let stories = containers(seen);
    stories.iter().flat_map(|story| story.lines()).collect()
}

const RUNNING: &str = "app: running since 2026-01-01T00:00:20Z, ready";
const CRASHED: &str =
    "  last ended 2026-01-01T00:00:12Z: Error, exit code 1; not by a known request";
const ASKED: &str = "  last ended 2026-01-01T00:00:12Z: Completed, exit code 0; requested by crr/r";
const BY_EVENT: &str = "  requested 2026-01-01T00:00:12.5Z: crr/r, requested by jane";
const BY_REQUEST: &str = "  requested 2026-01-01T00:00:10Z: crr/r, requested by jane";

/// Instance `b` of container `app`, after `a` ended with that code at second 12.
fn after_end(exit_code: i32) -> Value {
    pod(&json!([app(
        &running("b", 20),
        &ended("a", exit_code, 1, 12),
        1
    )]))
}

/// What is told below the container's first line, and how many restarts are known to be requested.
fn check(what: &str, seen: &PodEvidence, restarts: (i32, usize), told: &[&str]) {
    let (all, known) = restarts;
    let first = format!("{RUNNING}, restarts {all}, known to be requested {known}");
    let told: Vec<_> = [first.as_str()]
        .into_iter()
        .chain(told.iter().copied())
        .collect();
    assert_eq!(lines(seen), told, "{what}");
}

#[test]
fn a_crash_is_told_from_a_restart_that_was_asked_for() {
    let calm = pod(&json!([app(&running("a", 20), &Value::Null, 0)]));
    assert_eq!(lines(&seen(calm, &[], &[])), [RUNNING]);
    check("a crash", &seen(after_end(1), &[], &[]), (1, 0), &[CRASHED]);
    let twice = pod(&json!([app(&running("c", 20), &ended("b", 1, 11, 12), 2)]));
    check(
        "a crash after a restart that was asked for",
        &seen(twice, &[request("r", "a", Some("b"))], &[]),
        (2, 1),
        &[CRASHED, BY_REQUEST],
    );
    check(
        "a crash long before a stop by a request that was deleted",
        &seen(after_end(1), &[], &[killing("r", 30)]),
        (1, 1),
        &[
            CRASHED,
            "  requested 2026-01-01T00:00:30.5Z: crr/r, requested by jane",
        ],
    );
}

#[test]
fn a_restart_that_was_asked_for_names_its_request() {
    let cases = [
        (
            "the event has expired",
            seen(after_end(0), &[request("r", "a", Some("b"))], &[]),
            BY_REQUEST,
        ),
        (
            "the request was deleted",
            seen(after_end(0), &[], &[killing("r", 12)]),
            BY_EVENT,
        ),
        (
            "being stopped: nothing in the request's status yet",
            seen(
                after_end(0),
                &[request("r", "a", None)],
                &[killing("r", 12)],
            ),
            BY_EVENT,
        ),
        (
            "forced: another instance than the one at creation was stopped",
            seen(after_end(0), &[request("r", "z", Some("b"))], &[]),
            BY_REQUEST,
        ),
    ];
    for (what, seen, by) in cases {
        check(what, &seen, (1, 1), &[ASKED, by]);
    }
}

#[test]
fn every_state_of_the_kubelets_is_told() {
    let waiting = json!({ "ready": false, "state": {
        "waiting": { "reason": "CrashLoopBackOff", "message": "back-off 10s" },
    }});
    let killed = json!({ "ready": false, "state": ended("a", 137, 1, 2) });
    let cases = [
        (
            json!([app(&waiting, &ended("a", 2, 1, 2), 3)]),
            vec![
                "app: waiting: CrashLoopBackOff (back-off 10s), restarts 3, known to be requested 0",
                "  last ended 2026-01-01T00:00:02Z: Error, exit code 2; not by a known request",
            ],
        ),
        (
            json!([app(&killed, &Value::Null, 0)]),
            vec!["app: ended 2026-01-01T00:00:02Z: Error, exit code 137; not by a known request"],
        ),
        (
            json!([app(
                &json!({ "ready": false, "state": {} }),
                &Value::Null,
                0
            )]),
            vec!["app: waiting: no reason told"],
        ),
        (json!([]), vec!["app: the kubelet has not told its state"]),
    ];
    for (statuses, told) in cases {
        assert_eq!(lines(&seen(pod(&statuses), &[], &[])), told);
    }
}

#[test]
fn sidecars_and_init_containers_are_told_first() {
    let mut with_inits = pod(&json!([app(&running("a", 20), &Value::Null, 0)]));
    with_inits["spec"]["initContainers"] =
        json!([{ "name": "setup" }, { "name": "proxy", "restartPolicy": "Always" }]);
    let mut proxy = app(&running("p", 5), &Value::Null, 0);
    proxy["name"] = json!("proxy");
    with_inits["status"]["initContainerStatuses"] = json!([proxy]);
    let told = [
        "setup (init): the kubelet has not told its state",
        "proxy (sidecar): running since 2026-01-01T00:00:05Z, ready",
        "app: running since 2026-01-01T00:00:20Z, ready",
    ];
    assert_eq!(lines(&seen(with_inits, &[], &[])), told);
}

fn whole() -> PodEvidence {
    let mut web = pod(&json!([app(&running("b", 20), &ended("a", 0, 1, 12), 1)]));
    web["spec"]["nodeName"] = json!("node-1");
    web["spec"]["readinessGates"] = json!([{ "conditionType": labels::KRUISE_POD_READY }]);
    let holders = r#"[{"userAgent":"ContainerRecreateRequest","key":"shop/s"}]"#;
    web["status"]["conditions"] = json!([
        {
            "type": labels::KRUISE_POD_READY, "status": "False", "message": holders,
            "lastTransitionTime": at(40),
        },
        { "type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady" },
    ]);
    let mut next = request("s", "b", None);
    next["metadata"]["creationTimestamp"] = json!(at(40));
    next["status"]["conditions"] = json!([{
        "type": "Succeeded", "status": "False", "reason": "Draining", "message": "keeps it not ready",
        "lastTransitionTime": at(41),
    }]);
    let back_off = json!({
        "metadata": {}, "involvedObject": { "kind": "Pod", "name": "web" }, "reason": "BackOff",
        "message": "restarting failed container", "count": 4, "firstTimestamp": at(2), "lastTimestamp": at(15),
    });
    let recreated = json!({
        "metadata": {}, "involvedObject": { "kind": "ContainerRecreateRequest", "name": "r" },
        "reason": "Recreated", "message": "recreated app", "eventTime": "2026-01-01T00:00:30.000000Z",
    });
    let requests = [request("r", "a", Some("b")), next];
    seen(web, &requests, &[back_off, recreated, killing("r", 12)])
}

#[test]
fn a_pod_is_told_from_its_containers_to_its_timeline() {
    let told = [
        "pod web: Running on node-1, not ready (ReadinessGatesNotReady)",
        "Containers:",
        "  app: running since 2026-01-01T00:00:20Z, ready, restarts 1, known to be requested 1",
        "    last ended 2026-01-01T00:00:12Z: Completed, exit code 0; requested by crr/r",
        "    requested 2026-01-01T00:00:12.5Z: crr/r, requested by jane",
        "Readiness gate KruisePodReady is False since 2026-01-01T00:00:40Z:",
        "  held by ContainerRecreateRequest shop/s",
        "Requests:",
        "  crr/s: Recreating, active, restarts app, requested by jane",
        "    Succeeded=False Draining: keeps it not ready",
        "  crr/r: Completed, Succeeded, restarts app, requested by jane",
        "Timeline:",
        "  2026-01-01T00:00:10Z  crr/r created",
        "  2026-01-01T00:00:12Z  container app ended: Completed, exit code 0; requested by crr/r",
        "  2026-01-01T00:00:12.5Z  event Killing of app: Stopping container app by ContainerRecreateRequest r, requested by jane",
        "  2026-01-01T00:00:15Z  event BackOff (4 times): restarting failed container",
        "  2026-01-01T00:00:30Z  crr/r event Recreated: recreated app",
        "  2026-01-01T00:00:30Z  crr/r completed",
        "  2026-01-01T00:00:40Z  crr/s created",
    ];
    assert_eq!(PodStory::new(&whole()).lines(), told);
}

#[test]
fn a_pods_json_keeps_its_shape() {
    let story = serde_json::to_value(PodStory::new(&whole())).unwrap();
    let head = json!({
        "kind": "Pod", "name": "web", "namespace": "shop", "node": "node-1", "phase": "Running", "ready": false,
        "notReadyBecause": "ReadinessGatesNotReady", "deletedAt": null, "olderRequests": 0,
    });
    for (field, value) in head.as_object().unwrap() {
        assert_eq!(&story[field], value, "{field}");
    }
    let end = json!({
        "at": at(12), "reason": "Completed", "exitCode": 0, "signal": null, "message": null, "request": "r",
    });
    let container = json!({
        "name": "app", "kind": "Container", "ready": true, "restartCount": 1,
        "state": { "is": "running", "since": at(20) },
        "lastEnd": end,
        "requestedRestarts": [{ "request": "r", "requestedBy": "jane", "at": "2026-01-01T00:00:12.5Z" }],
    });
    assert_eq!(story["containers"], json!([container]));
    let gate = json!({
        "condition": "KruisePodReady", "status": "False", "since": at(40), "message": null,
        "heldBy": [{ "userAgent": "ContainerRecreateRequest", "key": "shop/s" }],
    });
    assert_eq!(story["shutGate"], gate);
    let names: Vec<_> = story["requests"].as_array().unwrap().iter().collect();
    assert_eq!(
        (&names[0]["name"], &names[0]["active"]),
        (&json!("s"), &json!(true))
    );
    let first = json!({ "time": at(10), "about": "crr/r", "what": "created" });
    assert_eq!(story["timeline"][0], first);
}

#[test]
fn of_the_requests_that_have_ended_the_youngest_are_told() {
    let requests: Vec<_> = (0..7)
        .map(|number| request(&format!("r{number}"), "x", (number > 0).then_some("y")))
        .collect();
    let told = seen(pod(&json!([])), &requests, &[] as &[Value]);
    let lines = PodStory::new(&told).lines();
    let lines: Vec<_> = lines.iter().filter(|it| it.starts_with("  crr/")).collect();
    let names: Vec<_> = lines.iter().map(|line| &line[6..8]).collect();
    assert_eq!(names, ["r6", "r5", "r4", "r3", "r2", "r0"]);
    let story = serde_json::to_value(PodStory::new(&told)).unwrap();
    assert_eq!(story["olderRequests"], 1);
}

#[test]
fn an_event_of_another_kind_names_no_request() {
    let kubelets: Event = serde_json::from_value(json!({
        "metadata": { "name": "web.17a" }, "reason": "Killing", "message": "Stopping container app",
        "involvedObject": { "kind": "Pod", "name": "web", "fieldPath": "spec.containers{app}" },
    }))
    .unwrap();
    let restarts = super::restarts::requested_restarts("app", &[], &[kubelets]);
    assert!(restarts.is_empty());
    let ours: Event = serde_json::from_value(killing("r", 1)).unwrap();
    let other = super::restarts::requested_restarts("proxy", &[], &[ours]);
    assert!(other.is_empty());
}

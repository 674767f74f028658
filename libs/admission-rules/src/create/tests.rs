//! Every refusal with its words, and what a good request is completed with.

use std::time::Duration;

use model::presence::LastSeen;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::review_update;

fn pod() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "pod-uid"},
        "spec": {
            "nodeName": "node-1",
            "terminationGracePeriodSeconds": 45,
            "containers": [
                {"name": "app", "ports": [{"name": "admin", "containerPort": 8080}],
                 "lifecycle": {"preStop": {"httpGet": {"port": "admin", "path": "/bye"}}}},
                {"name": "cold"},
            ],
            "initContainers": [
                {"name": "setup"},
                {"name": "proxy", "restartPolicy": "Always", "ports": [{"containerPort": 9}],
                 "lifecycle": {"preStop": {"httpGet": {"port": 9}}}},
                {"name": "late", "restartPolicy": "Always"},
            ],
            "ephemeralContainers": [{"name": "debugger"}],
        },
        "status": {
            "phase": "Running",
            "containerStatuses": [status("app", 2)],
            "initContainerStatuses": [status("setup", 0), status("proxy", 1)],
        },
    })
}

fn status(name: &str, restart_count: i32) -> Value {
    json!({
        "name": name, "containerID": format!("containerd://{name}"), "restartCount": restart_count,
        "ready": true, "image": "", "imageID": "",
    })
}

fn facts(pod: Value) -> Facts {
    let pod = serde_json::from_value(pod).unwrap();
    Facts {
        pod: Some(pod),
        node_exists: Some(true),
        is_node_virtual: false,
        ..Facts::default()
    }
}

fn object(spec: Value) -> Value {
    json!({"metadata": {"name": "restart", "namespace": "shop"}, "spec": spec})
}

fn app() -> Value {
    json!({"podName": "web", "containers": [{"name": "app"}]})
}

fn parsed(object: &Value) -> DynamicObject {
    serde_json::from_value(object.clone()).unwrap()
}

fn review(object: &Value, facts: &Facts) -> Verdict {
    review_create(&parsed(object), facts, &Origin::default())
}

/// The faults of a spec against facts.
fn check(spec: Value, facts: &Facts, expected: &[&str]) {
    let object = object(spec);
    let verdict = review(&object, facts);
    let faults: Vec<_> = verdict.faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults, expected);
    assert!(verdict.is_allowed() || (verdict.code() == 400 && verdict.patch.0.is_empty()));
}

fn with(mut value: Value, pointer: &str, change: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = value.pointer_mut(parent).unwrap();
    parent[key] = change;
    value
}

#[test]
fn the_pod_must_be_there_and_running() {
    check(
        app(),
        &Facts::default(),
        &["spec.podName: no pod web is in this namespace"],
    );
    let cases = [
        (
            "/spec/nodeName",
            json!(null),
            "pod web is pending: it has no node yet",
        ),
        (
            "/status/phase",
            json!("Succeeded"),
            "pod web has finished: its phase is Succeeded",
        ),
        (
            "/status/phase",
            json!("Failed"),
            "pod web has finished: its phase is Failed",
        ),
        (
            "/metadata/deletionTimestamp",
            json!("2026-01-01T00:00:00Z"),
            "pod web is being deleted",
        ),
    ];
    for (pointer, value, problem) in cases {
        let fault = format!("spec.podName: {problem}");
        check(app(), &facts(with(pod(), pointer, value)), &[&fault]);
    }
    let without_node = Facts {
        node_exists: Some(false),
        ..facts(pod())
    };
    let fault = "spec.podName: pod web is on node node-1, which does not exist";
    check(app(), &without_node, &[fault]);
}

#[test]
fn a_name_that_no_pod_can_bear_is_neither_read_nor_taken() {
    for name in [
        "web?resourceVersion=0",
        "web/log",
        "../nodes/x",
        "..",
        "web%2Flog",
        "Web",
        "-web",
        "web ",
    ] {
        let object = object(with(app(), "/podName", json!(name)));
        assert_eq!(needed_pod(&parsed(&object)), None, "{name}");
        let fault = &review(&object, &facts(pod())).faults[0];
        assert_eq!(fault.field, "spec.podName", "{name}");
    }
    let object = object(with(app(), "/podName", json!("web-0.shop")));
    assert_eq!(needed_pod(&parsed(&object)), Some("web-0.shop"));
}

#[test]
fn a_finished_pod_whose_sidecars_were_ended_is_taken() {
    let pod = with(pod(), "/status/phase", json!("Succeeded"));
    let condition = json!([{"type": "SidecarTerminated", "status": "True"}]);
    check(
        app(),
        &facts(with(pod, "/status/conditions", condition)),
        &[],
    );
}

#[test]
fn all_faults_are_told_at_once() {
    let spec = json!({
        "podName": "",
        "containers": [],
        "activeDeadlineSeconds": 2,
        "ttlSecondsAfterFinished": -1,
        "strategy": {
            "failurePolicy": "Maybe", "orderedRecreate": "yes", "minStartedSeconds": -1,
            "terminationGracePeriodSeconds": -2, "unreadyGracePeriodSeconds": "3",
        },
    });
    check(
        spec,
        &facts(pod()),
        &[
            r#"spec.strategy.failurePolicy: is "Maybe"; allowed are Fail and Ignore"#,
            r#"spec.strategy.orderedRecreate: is "yes"; it must be true or false"#,
            "spec.strategy.terminationGracePeriodSeconds: is -2; it must be at least 0",
            r#"spec.strategy.unreadyGracePeriodSeconds: is "3"; it must be a whole number"#,
            "spec.strategy.minStartedSeconds: is -1; it must be at least 0",
            "spec.activeDeadlineSeconds: is 2; it must be at least 3",
            "spec.ttlSecondsAfterFinished: is -1; it must be at least 0",
            "spec.podName: is empty; it must name a pod in the request's namespace",
            "spec.containers: is empty; it must name at least one container",
        ],
    );
}

#[test]
fn containers_must_be_the_pods_and_named_once() {
    let cases = [
        (
            json!([{"name": "app"}, {"name": "app"}]),
            "[1].name: container app is named twice",
        ),
        (
            json!([{"name": "nope"}]),
            "[0].name: the pod has no container nope; it has app, cold, proxy, late",
        ),
        (
            json!([{"name": "cold"}]),
            "[0].name: container cold has never started: there is nothing to recreate",
        ),
        (
            json!([{"name": "setup"}]),
            "[0].name: setup is an init container; only containers and native sidecars \
             (init containers with restartPolicy Always) can be recreated",
        ),
        (
            json!([{"name": "late"}]),
            "[0].name: container late has never started: there is nothing to recreate",
        ),
        (
            json!([{"name": "debugger"}]),
            "[0].name: debugger is an ephemeral container, which no kubelet starts again",
        ),
        (json!([{"name": 5}]), "[0].name: is 5; it must be a string"),
        (
            json!([{}]),
            "[0].name: is empty; it must name a container of the pod",
        ),
    ];
    for (containers, fault) in cases {
        let fault = format!("spec.containers{fault}");
        check(
            with(app(), "/containers", containers),
            &facts(pod()),
            &[&fault],
        );
    }
}

#[test]
fn read_only_fields_are_refused_by_name() {
    for (field, value) in [
        ("preStop", json!({"exec": {"command": ["x"]}})),
        ("ports", json!([{"containerPort": 1}])),
        (
            "statusContext",
            json!({"containerID": "containerd://x", "restartCount": 0}),
        ),
    ] {
        let spec = with(app(), &format!("/containers/0/{field}"), value);
        let fault = format!("spec.containers[0].{field}: {READ_ONLY}");
        check(spec, &facts(pod()), &[&fault]);
    }
}

#[test]
fn a_good_request_is_completed() {
    let object = object(json!({
        "podName": "web", "containers": [{"name": "app"}, {"name": "proxy"}],
    }));
    let origin = Origin {
        traceparent: Some("00-1-2-01".to_owned()),
        requester: None,
    };
    let verdict = review_create(&parsed(&object), &facts(pod()), &origin);
    let mut completed = object;
    json_patch::patch(&mut completed, &verdict.patch).unwrap();
    assert_eq!(
        completed["metadata"]["labels"],
        json!({
            "crr.apps.kruise.io/active": "true", "crr.apps.kruise.io/node-name": "node-1",
            "crr.apps.kruise.io/pod-name": "web", "crr.apps.kruise.io/pod-uid": "pod-uid",
        })
    );
    let traceparent = &completed["metadata"]["annotations"]["podwright.dev/traceparent"];
    assert_eq!(traceparent, "00-1-2-01");
    let strategy = json!({"failurePolicy": "Fail", "terminationGracePeriodSeconds": 45});
    assert_eq!(completed["spec"]["strategy"], strategy);
    assert_eq!(
        completed["spec"]["containers"],
        json!([
            {"name": "app", "preStop": {"httpGet": {"port": "admin", "path": "/bye"}},
             "ports": [{"name": "admin", "containerPort": 8080}],
             "statusContext": {"containerID": "containerd://app", "restartCount": 2}},
            {"name": "proxy", "preStop": {"httpGet": {"port": 9}}, "ports": [{"containerPort": 9}],
             "statusContext": {"containerID": "containerd://proxy", "restartCount": 1}},
        ])
    );
}

#[test]
fn containers_of_two_runtimes_are_refused_together_and_taken_alone() {
    let other = json!("cri-o://proxy");
    let pod = with(pod(), "/status/initContainerStatuses/1/containerID", other);
    let both = json!([{"name": "app"}, {"name": "proxy"}]);
    let fault = "spec.containers[1].name: container proxy is run by cri-o and container app by containerd; \
                 name containers of one runtime in one request";
    check(
        with(app(), "/containers", both),
        &facts(pod.clone()),
        &[fault],
    );
    for name in ["app", "proxy"] {
        let alone = with(app(), "/containers", json!([{"name": name}]));
        check(alone, &facts(pod.clone()), &[]);
    }
    let pod = with(
        pod,
        "/status/containerStatuses/0/containerID",
        json!("bare"),
    );
    let fault = "spec.containers[0].name: container app: \
                 container id \"bare\" is not of the form <runtime>://<id>";
    check(app(), &facts(pod), &[fault]);
}

/// Its mirror has another uid than the node knows it by; the label is of the object that is in the API.
#[test]
fn a_static_pod_is_taken() {
    let annotations = json!({
        "kubernetes.io/config.mirror": "hash", "kubernetes.io/config.hash": "hash",
        "kubernetes.io/config.source": "file",
    });
    let facts = facts(with(pod(), "/metadata/annotations", annotations));
    let object = object(app());
    let verdict = review(&object, &facts);
    let mut completed = object;
    json_patch::patch(&mut completed, &verdict.patch).unwrap();
    assert_eq!(
        completed["metadata"]["labels"][labels::CRR_POD_UID],
        "pod-uid"
    );
}

#[test]
fn who_asks_is_written_over_whatever_the_request_says() {
    let forged = json!({labels::REQUESTED_BY: "root", "mine": "a"});
    for (asked, expected) in [
        (
            Some("jane"),
            json!({labels::REQUESTED_BY: "jane", "mine": "a"}),
        ),
        (None, json!({"mine": "a"})),
    ] {
        let mut object = object(app());
        object["metadata"]["annotations"] = forged.clone();
        let origin = Origin {
            traceparent: None,
            requester: asked.map(str::to_owned),
        };
        let verdict = review_create(&parsed(&object), &facts(pod()), &origin);
        json_patch::patch(&mut object, &verdict.patch).unwrap();
        assert_eq!(object["metadata"]["annotations"], expected);
    }
}

#[test]
fn the_status_annotations_of_v1alpha1_are_left_out_of_v1beta1() {
    for (version, warnings, kept) in [("v1alpha1", 0, true), ("v1beta1", 1, false)] {
        let mut object = object(app());
        object["apiVersion"] = json!(format!("apps.kruise.io/{version}"));
        object["kind"] = json!("ContainerRecreateRequest");
        object["metadata"]["annotations"] = json!({labels::SYNC_CONTAINER_STATUSES: "[]"});
        let verdict = review(&object, &facts(pod()));
        assert_eq!(verdict.warnings.len(), warnings, "{version}");
        json_patch::patch(&mut object, &verdict.patch).unwrap();
        let annotations = &object["metadata"]["annotations"];
        assert_eq!(
            annotations.get(labels::SYNC_CONTAINER_STATUSES).is_some(),
            kept
        );
    }
}

#[test]
fn the_users_own_labels_are_overwritten_and_a_long_name_is_left_out() {
    let mut object = object(app());
    object["metadata"]["labels"] = json!({labels::CRR_POD_UID: "forged", "mine": "kept"});
    let long = "w".repeat(64);
    let facts = facts(with(pod(), "/metadata/name", json!(long)));
    let verdict = review(&object, &facts);
    json_patch::patch(&mut object, &verdict.patch).unwrap();
    let labels = &object["metadata"]["labels"];
    assert_eq!(
        (&labels[labels::CRR_POD_UID], &labels["mine"]),
        (&json!("pod-uid"), &json!("kept"))
    );
    assert!(labels.get(labels::CRR_POD_NAME).is_none());
}

#[test]
fn the_kind_of_a_virtual_node_is_copied() {
    for (is_node_virtual, expected) in [(true, json!("virtual-kubelet")), (false, json!(null))] {
        let mut object = object(app());
        let facts = Facts {
            is_node_virtual,
            ..facts(pod())
        };
        let verdict = review(&object, &facts);
        json_patch::patch(&mut object, &verdict.patch).unwrap();
        assert_eq!(object["metadata"]["labels"]["type"], expected);
    }
}

#[test]
fn silence_and_waiting_are_warned_of_and_not_refused() {
    let facts = Facts {
        node_last_seen: Some(LastSeen::Ago(Duration::from_secs(31))),
        other_active: vec!["first".into()],
        ..facts(pod())
    };
    let object = object(app());
    let verdict = review(&object, &facts);
    assert_eq!(
        verdict.warnings,
        [
            "the node-executor of node node-1 has not been seen for 31 s",
            "waits for other requests of the same pod: first",
        ]
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let keys = prop_oneof![
            Just("spec"),
            Just("podName"),
            Just("containers"),
            Just("name"),
            Just("strategy"),
            Just("metadata"),
            Just("labels"),
            Just("preStop"),
            Just("activeDeadlineSeconds"),
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((keys, inner), 0..5).prop_map(|entries| {
                Value::Object(
                    entries
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}

proptest! {
    /// Any author may send anything: it is answered.
    #[test]
    fn anything_is_answered(object in any_json(), spec in any_json(), old in any_json()) {
        let metadata = json!({"name": "restart", "labels": {"mine": "a"}});
        let old = json!({"metadata": metadata, "spec": old});
        for object in [object.clone(), json!({"metadata": object, "spec": spec}), json!({"metadata": metadata, "spec": spec})] {
            // The API server sends no object that does not decode.
            let Ok(object) = serde_json::from_value::<DynamicObject>(object) else {
                continue;
            };
            let _pod = needed_pod(&object);
            let _verdict = review_create(&object, &facts(pod()), &Origin::default());
            let _verdict = review_update(&object, &parsed(&old));
        }
    }
}

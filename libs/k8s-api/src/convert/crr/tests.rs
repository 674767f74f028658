//! Objects as they come, and statuses as they go.

use super::*;

fn object(spec: Value, status: Value) -> ContainerRecreateRequest {
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ContainerRecreateRequest",
        "metadata": {
            "name": "restart", "namespace": "shop", "uid": "u",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                labels::CRR_POD_UID: "pod-uid", labels::CRR_NODE_NAME: "node-1",
                labels::CRR_ACTIVE: "true",
            },
        },
        "spec": spec,
        "status": status,
    });
    serde_json::from_value(object).unwrap()
}

fn with_hook(hook: Value, ports: Value) -> Result<Crr, InvalidCrr> {
    let container = json!({
        "name": "app", "preStop": hook, "ports": ports,
        "statusContext": {"containerID": "containerd://1", "restartCount": 2},
    });
    let spec = json!({"podName": "web", "containers": [container]});
    crr_from_object(&object(spec, json!({"phase": ""})))
}

#[test]
fn reads_what_admission_wrote() {
    let crr = with_hook(json!({"exec": {"command": ["sync"]}}), json!([])).unwrap();
    assert_eq!(
        (crr.pod_uid.unwrap().as_str(), crr.node.unwrap().as_str()),
        ("pod-uid", "node-1")
    );
    assert!(crr.is_labelled_active);
    let container = &crr.containers[0];
    assert_eq!(container.fence.as_ref().unwrap().restart_count, 2);
    assert_eq!(
        container.pre_stop,
        Some(PreStop::Exec {
            command: vec!["sync".to_owned()]
        })
    );
}

#[test]
fn finds_ports_by_name_and_by_number() {
    let ports = json!([{"name": "admin", "containerPort": 8080}]);
    for (port, expected) in [(json!("admin"), 8080), (json!(81), 81), (json!("82"), 82)] {
        let hook = json!({"httpGet": {"port": port, "path": "/bye"}});
        match with_hook(hook, ports.clone()).unwrap().containers[0]
            .pre_stop
            .clone()
        {
            Some(PreStop::HttpGet { port, .. }) => assert_eq!(port, expected),
            other => panic!("read {other:?}"),
        }
    }
    let crr = with_hook(json!({"tcpSocket": {"port": "other"}}), ports).unwrap();
    let container = &crr.containers[0];
    assert_eq!(container.pre_stop, None);
    let fault = container.hook_fault.as_deref();
    assert_eq!(fault, Some(r#"the container has no port named "other""#));
}

#[test]
fn a_status_comes_back_as_it_went() {
    let status = CrrStatus {
        phase: Some(CrrPhase::Completed),
        completed_at: Some("2026-01-01T00:00:09Z".parse().unwrap()),
        message: "pod has gone".to_owned(),
        containers: vec![ContainerRecreateState {
            name: "app".into(),
            phase: ContainerPhase::Succeeded,
            message: String::new(),
            is_killed: true,
        }],
        snapshot: vec![ContainerSnapshot {
            name: "app".into(),
            is_ready: true,
            restart_count: 1,
            container_id: "containerd://new".parse().unwrap(),
        }],
        conditions: vec![Condition {
            kind: ConditionType::Succeeded,
            state: ConditionState::False,
            reason: "PodGone".to_owned(),
            message: "pod web was deleted".to_owned(),
            since: "2026-01-01T00:00:09Z".parse().unwrap(),
        }],
    };
    let written = status_json(&status);
    assert_eq!(
        written["containerRecreateStates"],
        json!([{"name": "app", "phase": "Succeeded", "isKilled": true}])
    );
    let spec = json!({"podName": "web", "containers": []});
    assert_eq!(
        crr_from_object(&object(spec, written)).unwrap().status,
        status
    );
}

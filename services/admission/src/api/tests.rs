//! Answers to AdmissionReviews, and the traces that they belong to.

use std::{collections::BTreeSet, convert::Infallible};

use axum::{
    body::{Body, to_bytes},
    http::{self, HeaderValue},
};
use bus::Bus;
use kube::Client;
use prometheus_client::registry::Registry;
use proptest::{
    prelude::{Just, Strategy, any},
    prop_oneof,
    strategy::ValueTree,
    test_runner::TestRunner,
};
use serde_json::Value;
use tower::ServiceExt;

use super::*;

fn headers(traceparent: Option<&'static str>) -> HeaderMap {
    let value = traceparent.map(HeaderValue::from_static);
    value
        .map(|value| ("traceparent".parse().unwrap(), value))
        .into_iter()
        .collect()
}

fn review(operation: &str, object: &Value, old: &Value) -> Value {
    let kind = json!({
        "group": "apps.kruise.io", "version": "v1beta1", "kind": "ContainerRecreateRequest",
    });
    let resource = json!({"group": "apps.kruise.io", "version": "v1beta1", "resource": "crrs"});
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "the-uid", "kind": kind, "resource": resource, "name": "restart",
            "namespace": "shop", "operation": operation, "userInfo": {"username": "jane"},
            "object": object, "oldObject": old,
        },
    })
}

fn request(operation: &str, object: &Value, old: &Value) -> Request {
    request_from(review(operation, object, old).to_string().as_bytes()).unwrap()
}

#[test]
fn a_later_review_belongs_to_the_trace_of_the_creation() {
    let old = json!({"metadata": {"annotations": {labels::TRACE_PARENT: "00-creation"}}});
    let update = request("UPDATE", &old, &old);
    let create = request("CREATE", &old, &Value::Null);
    let (server, none) = (headers(Some("00-server")), headers(None));
    assert_eq!(traceparent_of(&update, &server), Some("00-creation"));
    assert_eq!(traceparent_of(&update, &none), Some("00-creation"));
    assert_eq!(traceparent_of(&create, &server), Some("00-server"));
    assert_eq!(traceparent_of(&create, &none), None);
}

#[test]
fn only_creations_of_requests_and_launches_begin_traces() {
    assert!(begins_trace(Webhook::Crr, &Operation::Create));
    assert!(!begins_trace(Webhook::Crr, &Operation::Update));
    assert!(!begins_trace(Webhook::PodGate, &Operation::Create));
    assert!(begins_trace(Webhook::PodLaunch, &Operation::Create));
}

#[test]
fn a_refusal_has_the_code_and_every_fault() {
    let object = json!({"metadata": {}, "spec": {"podName": "", "containers": []}});
    let request = request("CREATE", &object, &Value::Null);
    let object = request.object.as_ref().unwrap();
    let verdict = review_create(object, &Facts::default(), &Origin::default());
    let response = json!(response_to(&request, Ok(verdict)));
    assert_eq!(
        (&response["allowed"], &response["status"]["code"]),
        (&json!(false), &json!(400))
    );
    let message = response["status"]["message"].as_str().unwrap();
    assert_eq!(message.lines().count(), 2, "{message}");
}

#[test]
fn name_ends_differ_and_fit_a_name() {
    let ends: BTreeSet<_> = (0..100).map(|_| random_name_end()).collect();
    assert!(ends.len() > 90, "{ends:?}");
    assert!(ends.iter().all(|end| end.len() == NAME_END));
}

/// The router, with an API server that has no objects and a bus that does not answer.
async fn router() -> Router {
    let server = async |_: http::Request<kube::client::Body>| {
        let status = json!({"kind": "Status", "code": 404, "reason": "NotFound"}).to_string();
        let response = http::Response::builder().status(404);
        Ok::<_, Infallible>(
            response
                .body(kube::client::Body::from(status.into_bytes()))
                .unwrap(),
        )
    };
    let client = Client::new(tower::service_fn(server), "shop");
    let args = bus::Args::at("nats://127.0.0.1:1");
    let bus = Bus::connect(&args, "admission").await.unwrap();
    let cluster = Cluster::new(client, bus);
    let metrics = Metrics::register(&mut Registry::default());
    super::router(cluster, metrics, GateScope::EveryPod)
}

async fn ask(router: &Router, path: &str, body: Vec<u8>) -> (StatusCode, Value) {
    let request = http::Request::post(path).body(Body::from(body)).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn a_review_is_answered_under_its_uid() {
    let router = router().await;
    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": []},
    });
    let body = review("CREATE", &object, &Value::Null).to_string();
    let (status, answer) = ask(&router, "/mutate-pod", body.into_bytes()).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        (&answer["apiVersion"], &answer["kind"]),
        (&json!("admission.k8s.io/v1"), &json!("AdmissionReview"))
    );
    let response = &answer["response"];
    assert_eq!(
        (
            &response["uid"],
            &response["allowed"],
            &response["patchType"]
        ),
        (&json!("the-uid"), &json!(true), &json!("JSONPatch"))
    );
    let patch: Vec<u8> = serde_json::from_value(response["patch"].clone()).unwrap();
    let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
    let mut patched = object;
    json_patch::patch(&mut patched, &patch).unwrap();
    assert_eq!(
        patched["spec"]["readinessGates"],
        json!([{"conditionType": labels::KRUISE_POD_READY}])
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z]{0,4}".prop_map(Value::from),
    ];
    let words = [
        "metadata",
        "labels",
        "spec",
        "podName",
        "containers",
        "env",
        "name",
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let keys = proptest::sample::select(words.map(str::to_owned).to_vec());
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(keys, inner, 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

#[tokio::test]
async fn any_bytes_are_answered() {
    let router = router().await;
    let mut runner = TestRunner::deterministic();
    let bytes = proptest::collection::vec(any::<u8>(), 0..40);
    let all = (bytes, any_json(), any_json());
    for _ in 0..100 {
        let (bytes, object, spec) = all.new_tree(&mut runner).unwrap().current();
        let named = json!({"metadata": {"name": "web"}, "spec": spec});
        let bodies = [
            bytes,
            object.to_string().into_bytes(),
            review("CREATE", &object, &Value::Null)
                .to_string()
                .into_bytes(),
            review("CREATE", &named, &Value::Null)
                .to_string()
                .into_bytes(),
            review("UPDATE", &named, &named).to_string().into_bytes(),
        ];
        for (path, _) in WEBHOOKS {
            for body in bodies.clone() {
                let (status, answer) = ask(&router, path, body).await;
                match status {
                    StatusCode::OK => assert_eq!(answer["response"]["uid"], "the-uid"),
                    other => assert_eq!(other, StatusCode::BAD_REQUEST),
                }
            }
        }
    }
}

//! Requests and their results, against an API server in the process.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::{Client, client::Body};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use testkit::{at, priorities, web};
use tower::service_fn;

use super::*;

type Requests = Arc<Mutex<Vec<String>>>;

/// Effects on an API server that answers every request so.
fn effects(status: u16, content: Value) -> (Effects, Requests) {
    let requests = Requests::default();
    let log = requests.clone();
    let answer = move |request: Request<Body>| {
        let line = format!("{} {}", request.method(), request.uri().path());
        log.lock().unwrap().push(line);
        let response = Response::builder().status(status);
        std::future::ready(response.body(Body::from(content.to_string().into_bytes())))
    };
    let cluster = Cluster::new(Client::new(service_fn(answer), "default"), false);
    let metrics = Metrics::register(&mut Registry::default());
    (Effects::new(cluster, metrics), requests)
}

fn status(code: u16) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": "", "message": "no", "metadata": {} })
}

async fn result_of(write: Write, code: u16) -> WriteResult {
    let (mut effects, _) = effects(code, status(code));
    let (pod, uid) = (web(), PodUid::new("pod-uid"));
    let action = Action::Write(write);
    effects.perform(Effect { pod, uid, action }, at(0));
    match effects.next().await {
        Some(Ok(Some(Event::Written { result, .. }))) => result,
        other => panic!("{other:?}"),
    }
}

fn nudge() -> Write {
    Write::Nudge {
        level: model::launch::Priority::new(0),
        completes: false,
    }
}

fn create() -> Write {
    Write::CreateMap {
        keys: priorities(&[0]),
    }
}

#[tokio::test]
async fn every_failure_of_a_write_has_its_result() {
    let why = "no".to_owned();
    for (write, code, expected) in [
        (create(), 409, WriteResult::MapConflict),
        (create(), 404, WriteResult::MapConflict),
        (create(), 403, WriteResult::Failed(Some(why.clone()))),
        (create(), 500, WriteResult::Failed(None)),
        (nudge(), 409, WriteResult::PodBusy),
        (nudge(), 404, WriteResult::PodGone),
        (nudge(), 422, WriteResult::Failed(Some(why))),
        (nudge(), 503, WriteResult::Failed(None)),
    ] {
        assert_eq!(result_of(write, code).await, expected, "{code}");
    }
}

#[tokio::test]
async fn a_map_is_created_and_fetched_by_the_name_of_its_pod() {
    let metadata = json!({ "name": "web-barrier", "uid": "m", "resourceVersion": "7" });
    let (mut effects, requests) = effects(200, json!({ "metadata": metadata }));
    let (pod, uid) = (web(), PodUid::new("pod-uid"));
    let write = create();
    let (key, of) = (pod.clone(), uid.clone());
    let action = Action::Write(write);
    effects.perform(Effect { pod, uid, action }, at(0));
    let written = effects.next().await.unwrap().unwrap();
    let Some(Event::Written {
        result: WriteResult::MapWritten(map),
        ..
    }) = written
    else {
        panic!("{written:?}");
    };
    let fetch = Effect {
        pod: key,
        uid: of,
        action: Action::FetchMap,
    };
    effects.perform(fetch, at(0));
    let fetched = effects.next().await.unwrap().unwrap();
    assert!(
        matches!(&fetched, Some(Event::Fetched { result: FetchResult::Found(found), .. }) if *found == map),
        "{fetched:?}"
    );
    let path = "/api/v1/namespaces/shop/configmaps";
    let expected = [format!("POST {path}"), format!("GET {path}/web-barrier")];
    assert_eq!(*requests.lock().unwrap(), expected);
}

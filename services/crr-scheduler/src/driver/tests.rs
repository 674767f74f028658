//! What the driver makes of events that come in another order than one would like. The API server answers nothing here:
//! each write is under way until the test says what became of it.

use std::convert::Infallible;

use api_client::ObjectKey;
use http::{Request, Response};
use kube::{Client, client::Body};
use prometheus_client::registry::Registry;
use serde_json::json;

use super::*;

/// A leader that has listed nothing yet.
async fn driver() -> Driver {
    let silent = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<Body>, Infallible>>()
    });
    let cluster = Cluster::new(Client::new(silent, "default"), false);
    let nowhere = bus::Args::at("nats://127.0.0.1:1");
    let bus = Bus::connect(&nowhere, "crr-scheduler").await.unwrap();
    let metrics = Metrics::register(&mut Registry::default());
    Driver::new(cluster, bus, metrics, StateCell::default())
}

/// A request of pod `web`, as admission lets it through.
fn object(name: &str, uid: &str, version: &str) -> ContainerRecreateRequest {
    let object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
        "metadata": {
            "namespace": "shop", "name": name, "uid": uid, "resourceVersion": version,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "crr.apps.kruise.io/pod-uid": "pod-1", "crr.apps.kruise.io/node-name": "node-1",
                "crr.apps.kruise.io/active": "true",
            },
        },
        "spec": { "podName": "web", "containers": [{ "name": "main" }] },
    });
    serde_json::from_value(object).unwrap()
}

fn in_phase(mut object: ContainerRecreateRequest, phase: &str) -> ContainerRecreateRequest {
    let status = json!({ "phase": phase, "containerRecreateStates": [] });
    object.status = Some(serde_json::from_value(status).unwrap());
    object
}

fn key(name: &str) -> CrrKey {
    CrrKey {
        namespace: "shop".into(),
        name: name.into(),
    }
}

fn apply(object: ContainerRecreateRequest) -> Event {
    Event::Crr(Box::new(WatchEvent::Seen(object)))
}

fn written(
    object: &ContainerRecreateRequest,
    result: Result<ContainerRecreateRequest, WriteError>,
) -> Event {
    let metadata = object.metadata.clone();
    let writing = Writing {
        crr: key(&metadata.name.unwrap()),
        uid: metadata.uid.unwrap().as_str().into(),
        version: metadata.resource_version.unwrap(),
        what: Written::Status,
    };
    Event::Written(writing, result.map(|object| Some(Box::new(object))))
}

impl Driver {
    /// Its list is whole, and holds these.
    async fn listed(mut self, objects: Vec<ContainerRecreateRequest>) -> Self {
        let begin = Event::Crr(Box::new(WatchEvent::ListBegun));
        for event in [begin].into_iter().chain(objects.into_iter().map(apply)) {
            self.handle(event).await;
            assert!(
                self.requests.is_empty(),
                "nothing is done before the list is whole"
            );
        }
        self.handle(Event::Crr(Box::new(WatchEvent::ListEnded)))
            .await;
        self
    }

    fn is_writing(&self, name: &str) -> bool {
        self.crrs.get(&key(name)).unwrap().is_writing
    }
}

#[tokio::test]
async fn a_conflict_with_what_was_seen_already_is_planned_anew() {
    let (first, second) = (object("a", "1", "1"), object("a", "1", "2"));
    let mut driver = driver().await.listed(vec![first.clone()]).await;
    assert!(driver.is_writing("a"));
    driver.handle(apply(second)).await;
    driver
        .handle(written(&first, Err(WriteError::Conflict)))
        .await;
    assert!(driver.is_writing("a"), "the newer object is written");
}

#[tokio::test]
async fn a_conflict_with_what_was_not_seen_yet_waits_for_it() {
    let (first, second) = (object("a", "1", "1"), object("a", "1", "2"));
    let mut driver = driver().await.listed(vec![first.clone()]).await;
    driver
        .handle(written(&first, Err(WriteError::Conflict)))
        .await;
    assert!(!driver.is_writing("a"), "the same would be refused again");
    driver.handle(apply(second)).await;
    assert!(driver.is_writing("a"));
}

#[tokio::test]
async fn an_answer_for_a_deleted_request_is_none_for_its_namesake() {
    let (old, new) = (object("a", "1", "1"), object("a", "2", "5"));
    let mut driver = driver().await.listed(vec![old.clone()]).await;
    let gone = ObjectKey {
        namespace: "shop".to_owned(),
        name: "a".to_owned(),
        uid: "1".to_owned(),
    };
    let gone = WatchEvent::Gone(gone);
    driver.handle(Event::Crr(Box::new(gone))).await;
    driver.handle(apply(new)).await;
    driver
        .handle(written(&old, Ok(object("a", "1", "4"))))
        .await;
    let tracked = driver.crrs.get(&key("a")).unwrap();
    assert_eq!((tracked.crr.uid.as_str(), tracked.is_writing), ("2", true));
    assert_eq!(driver.crrs.keys_of(&tracked.crr.pod).len(), 1);
}

#[tokio::test]
async fn an_ended_request_is_known_until_the_watch_has_come_to_its_end() {
    let ended = in_phase(object("a", "1", "1"), "Completed");
    let mut closed = in_phase(object("a", "1", "2"), "Completed");
    if let Some(labels) = &mut closed.metadata.labels {
        labels.remove("crr.apps.kruise.io/active");
    }
    let mut driver = driver().await.listed(vec![ended.clone()]).await;
    assert!(driver.is_writing("a"), "its label goes");
    driver.handle(written(&ended, Ok(closed.clone()))).await;
    // The watch is behind.
    driver.handle(apply(ended)).await;
    assert!(!driver.is_writing("a"), "its label has gone");
    driver.handle(apply(closed)).await;
    assert!(
        driver.crrs.get(&key("a")).is_none(),
        "nothing is left to do"
    );
}

#[tokio::test]
async fn a_namesake_that_only_a_new_list_shows_takes_the_place() {
    let mut driver = driver().await.listed(vec![object("a", "1", "1")]).await;
    driver.handle(apply(object("a", "2", "5"))).await;
    let order = OrderId::stop(&"1".into(), &"main".into());
    assert!(
        driver.crrs.owner(&order).is_none(),
        "the old one is forgotten"
    );
    assert!(driver.is_writing("a"));
}

#[tokio::test]
async fn a_new_leader_goes_on_with_the_request_at_work() {
    let waiting = in_phase(object("a", "1", "1"), "Pending");
    let at_work = in_phase(object("b", "2", "2"), "Recreating");
    let driver = driver().await.listed(vec![waiting, at_work]).await;
    let turn = |name: &str| driver.turn(&key(name));
    assert_eq!(
        (turn("a"), turn("b")),
        (Turn::Behind("b".into()), Turn::Mine)
    );
}

#[tokio::test]
async fn who_has_begun_keeps_its_turn_though_an_older_one_comes() {
    let mut driver = driver().await.listed(vec![object("b", "2", "2")]).await;
    assert!(driver.is_writing("b"), "its beginning is under way");
    driver.handle(apply(object("a", "1", "1"))).await;
    let turn = |name: &str| driver.turn(&key(name));
    assert_eq!(
        (turn("a"), turn("b")),
        (Turn::Behind("b".into()), Turn::Mine)
    );
}

#[tokio::test]
async fn a_moment_that_comes_while_an_answer_is_waited_for_is_used_up() {
    let mut driver = driver().await.listed(vec![object("a", "1", "1")]).await;
    driver.wakes.set(&key("a"), Some(Instant::now()));
    driver.handle(Event::Tick).await;
    assert_eq!(
        driver.wakes.get(&key("a")),
        None,
        "the loop would never sleep"
    );
}

#[tokio::test]
async fn an_answer_about_the_gate_that_a_newer_pod_has_overtaken_is_planned_for() {
    let first = object("a", "1", "1");
    let mut driver = driver().await.listed(vec![first]).await;
    let pod = driver.crrs.get(&key("a")).unwrap().crr.pod.clone();
    let answer = Event::GateWritten(key("a"), "1".into(), pod.clone(), Ok(None));
    assert!(driver.take(answer).await.contains(&key("a")));
    let foreign = Event::GateWritten(key("a"), "another".into(), pod, Ok(None));
    assert!(driver.take(foreign).await.is_empty());
}

//! The leader against an API server in the process: which requests it makes, and when it wakes.

use std::sync::{Arc, Mutex};

use api_client::ObjectKey;
use http::{Request, Response};
use kube::{Client, client::Body};
use prometheus_client::registry::Registry;
use tower::service_fn;

use super::*;

/// What was asked of the API server, by method and path.
type Requests = Arc<Mutex<Vec<String>>>;

fn pod(version: u64) -> Pod {
    let source = json!({ "configMapKeyRef": { "name": "web-barrier", "key": "p_0" } });
    let object = json!({
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": version.to_string(),
        },
        "spec": {
            "nodeName": "node-1",
            "containers": [{
                "name": "app",
                "env": [{ "name": "KRUISE_CONTAINER_BARRIER", "valueFrom": source }],
            }],
        },
    });
    serde_json::from_value(object).unwrap()
}

/// An API server that has a ConfigMap `web-barrier` of somebody else.
fn blocked_cluster(requests: Requests) -> Cluster {
    let answer = move |request: Request<Body>| {
        let line = format!("{} {}", request.method(), request.uri().path());
        let is_creation = line.starts_with("POST") && line.ends_with("/configmaps");
        let is_event = line.ends_with("/events");
        requests.lock().unwrap().push(line);
        let (status, content) = if is_creation {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409,
                "reason": "AlreadyExists", "message": "it is there", "metadata": {},
            });
            (409, status)
        } else if is_event {
            (201, json!({ "metadata": {}, "involvedObject": {} }))
        } else {
            let metadata = json!({
                "name": "web-barrier", "namespace": "shop", "uid": "m", "resourceVersion": "7",
            });
            (200, json!({ "metadata": metadata }))
        };
        let response = Response::builder().status(status);
        let response = response.body(Body::from(serde_json::to_vec(&content).unwrap()));
        std::future::ready(response)
    };
    Cluster::new(Client::new(service_fn(answer), "default"), false)
}

fn blocked_driver() -> (Driver, Requests) {
    let requests = Requests::default();
    let mut driver = Driver::new(
        blocked_cluster(requests.clone()),
        Metrics::register(&mut Registry::default()),
        StateCell::default(),
        Duration::from_secs(60),
    );
    driver.are_maps_listed = true;
    (driver, requests)
}

impl Driver {
    fn see(&mut self, version: u64) {
        let event = WatchEvent::Seen(pod(version));
        self.step(Event::Pod(Box::new(event)));
    }

    /// Takes the answers to all that is under way.
    async fn settle(&mut self) {
        while let Some(ended) = self.requests.join_next().await {
            self.step(ended.unwrap());
        }
    }
}

fn about_maps(requests: &Requests) -> Vec<String> {
    let mut requests = std::mem::take(&mut *requests.lock().unwrap());
    requests.retain(|line| line.contains("/configmaps"));
    requests
}

#[tokio::test]
async fn a_blocked_pod_wakes_once_however_often_it_changes() {
    let (mut driver, _) = blocked_driver();
    driver.see(1);
    driver.settle().await;
    for version in 2..1_400 {
        driver.see(version);
    }
    driver.settle().await;
    assert_eq!(driver.wakes.len(), 1);
}

#[tokio::test]
async fn a_blocked_pod_costs_one_look_at_each_wake() {
    let (mut driver, requests) = blocked_driver();
    driver.see(1);
    driver.settle().await;
    let path = "/api/v1/namespaces/shop/configmaps";
    let get = format!("GET {path}/web-barrier");
    assert_eq!(about_maps(&requests), [format!("POST {path}"), get.clone()]);
    let key = PodKey {
        namespace: "shop".into(),
        name: "web".into(),
    };
    for in_vain in 1..5 {
        let due = driver.on_tick(driver.wakes.next().unwrap());
        assert!(due.is_empty());
        driver.settle().await;
        assert_eq!(about_maps(&requests), std::slice::from_ref(&get));
        let looked = driver.tracked[&key].looked.unwrap();
        assert_eq!((looked.in_vain, driver.wakes.len()), (in_vain, 1));
    }
    // It goes with the pod.
    let gone = WatchEvent::Gone(ObjectKey::of(&pod(2)));
    driver.step(Event::Pod(Box::new(gone)));
    assert!(driver.wakes.is_empty() && driver.maps.is_empty());
}

#[tokio::test]
async fn a_name_that_is_free_again_is_taken_at_the_next_look() {
    let (mut driver, requests) = blocked_driver();
    driver.see(1);
    driver.settle().await;
    // Somebody worked against us before, which is no reason not to plan with what a look shows.
    for tracked in driver.tracked.values_mut() {
        tracked.surprises = 5;
    }
    about_maps(&requests);
    let due = driver.on_tick(driver.wakes.next().unwrap());
    assert!(due.is_empty());
    driver.requests.abort_all();
    while driver.requests.join_next().await.is_some() {}
    let (key, uid) = driver.tracked.iter().next().unwrap();
    let (key, uid) = (key.clone(), uid.launch.pod.uid.clone());
    driver.step(Event::Fetched(key, uid, Ok(None)));
    driver.settle().await;
    let requests = about_maps(&requests);
    let creations = requests.iter().filter(|line| line.starts_with("POST"));
    assert_eq!(creations.count(), 1, "{requests:?}");
}

#[tokio::test]
async fn the_end_of_what_never_ends_is_an_error() {
    for (ended, expected) in [
        ("pods", "the watch of pods has ended"),
        ("maps", "the watch of ConfigMaps has ended"),
        ("starts", "the bus has closed the subscription to starts"),
    ] {
        let (mut driver, _) = blocked_driver();
        let mut sources = Sources {
            pods: events(ended == "pods"),
            maps: events(ended == "maps"),
            starts: events(ended == "starts"),
        };
        let error = driver.wait(&mut sources).await.err().unwrap();
        assert_eq!(error.to_string(), expected);
    }
}

/// A stream without anything in it, ended or not.
fn events<T: Send + 'static>(is_ended: bool) -> stream::BoxStream<'static, T> {
    if is_ended {
        stream::empty().boxed()
    } else {
        stream::pending().boxed()
    }
}

//! A client on a server that is busy, silent, or stops in the middle of an answer; time is virtual.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::StreamExt;
use http_body_util::{StreamBody, combinators::UnsyncBoxBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{PostParams, WatchParams},
};
use tokio::time::Instant;
use tower::service_fn;

use super::*;
use crate::WriteError;

const SERVICE: Patience = Patience {
    within: Some(SERVICE_WITHIN),
    retries: Retries::None,
};

const REVIEWER: Patience = Patience {
    within: Some(SERVICE_WITHIN),
    retries: Retries::Brief,
};

/// An event of a watch.
const ADDED: &str = concat!(
    r#"{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"}}}"#,
    "\n"
);

type ServerBody = UnsyncBoxBody<Bytes, BoxError>;

fn text(text: &'static str) -> ServerBody {
    Full::new(Bytes::from_static(text.as_bytes()))
        .map_err(Into::into)
        .boxed_unsync()
}

/// Begins an answer and never ends it.
fn stalled(text: &'static str) -> ServerBody {
    let begin = http_body::Frame::data(Bytes::from_static(text.as_bytes()));
    let begin = futures::stream::iter([Ok(begin)]);
    StreamBody::new(begin.chain(futures::stream::pending())).boxed_unsync()
}

/// What the server does with every request: an answer, or silence.
type Behaviour = fn() -> Option<(u16, ServerBody)>;

/// A client of such a server, and how many requests it has got.
fn client_of(behaviour: Behaviour, patience: Patience) -> (Api<ConfigMap>, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = requests.clone();
    let server = service_fn(move |_: Request<Body>| {
        counter.fetch_add(1, Ordering::Relaxed);
        async move {
            match behaviour() {
                Some((status, body)) => {
                    let answer = Response::builder()
                        .status(status)
                        .header("Retry-After", "60");
                    Ok::<_, BoxError>(answer.body(body)?)
                }
                None => std::future::pending().await,
            }
        }
    });
    let client = Client::new(patience.wrap(server), "shop");
    (Api::default_namespaced(client), requests)
}

fn busy() -> Option<(u16, ServerBody)> {
    let status = r#"{"kind":"Status","status":"Failure","message":"busy","reason":"ServiceUnavailable","code":503}"#;
    Some((503, text(status)))
}

async fn write(maps: &Api<ConfigMap>) -> Result<ConfigMap, WriteError> {
    let map = ConfigMap::default();
    Ok(maps.create(&PostParams::default(), &map).await?)
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_told_of_at_once_to_who_plans_again() {
    let (maps, requests) = client_of(busy, SERVICE);
    let start = Instant::now();
    assert!(matches!(write(&maps).await, Err(WriteError::Failed(_))));
    assert!(maps.get("web").await.is_err());
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(requests.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_again_for_two_seconds_at_most() {
    let (maps, requests) = client_of(busy, REVIEWER);
    let start = Instant::now();
    assert!(maps.get("web").await.is_err());
    assert_eq!(requests.load(Ordering::Relaxed), 6);
    assert!(start.elapsed() <= Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_fails_the_write() {
    let (maps, _) = client_of(|| None, SERVICE);
    let start = Instant::now();
    let error = write(&maps).await.unwrap_err();
    assert!(matches!(error, WriteError::Failed(_)));
    assert_eq!(error.refusal(), None);
    assert_eq!(start.elapsed(), SERVICE_WITHIN);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_in_the_middle_of_an_answer_fails_the_read() {
    let (maps, _) = client_of(|| Some((200, stalled(r#"{"kind":"#))), SERVICE);
    let start = Instant::now();
    let error = maps.get("web").await.unwrap_err();
    assert!(
        error.to_string().contains("did not answer in full"),
        "{error}"
    );
    assert_eq!(start.elapsed(), SERVICE_WITHIN);
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_not_cut() {
    let behaviour = || Some((200, stalled(ADDED)));
    let (maps, _) = client_of(behaviour, SERVICE);
    let events = maps.watch(&WatchParams::default(), "0").await.unwrap();
    let mut events = std::pin::pin!(events);
    assert!(matches!(events.next().await, Some(Ok(_))));
    let later = SERVICE_WITHIN * 4;
    assert!(timeout(later, events.next()).await.is_err());
}

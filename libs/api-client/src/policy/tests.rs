//! A client on a server that is busy, silent, or stops in the middle of an answer; time is virtual.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use http_body_util::{StreamBody, combinators::UnsyncBoxBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{PostParams, WatchParams},
};
use tokio::time::{Instant, sleep};
use tower::service_fn;

use super::*;
use crate::WriteError;

const SERVICE: RequestPolicy = RequestPolicy {
    retries: Retries::None,
    at_once: None,
};

const REVIEWER: RequestPolicy = RequestPolicy {
    retries: Retries::Brief,
    at_once: None,
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

/// The answer to every request; `None` if there is none.
type Behaviour = fn() -> Option<(u16, ServerBody)>;

/// A client of such a server, and the number of requests that arrived there.
fn client_of(behaviour: Behaviour, policy: RequestPolicy) -> (Api<ConfigMap>, Arc<AtomicUsize>) {
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
    let client = Client::new(policy.wrap(Some(ANSWER_WITHIN), server), "shop");
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
async fn a_caller_with_its_own_retries_gets_the_error_at_once() {
    let (maps, requests) = client_of(busy, SERVICE);
    let start = Instant::now();
    assert!(matches!(write(&maps).await, Err(WriteError::Failed(_))));
    assert!(maps.get("web").await.is_err());
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(requests.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn brief_retries_take_two_seconds_at_most() {
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
    assert_eq!(start.elapsed(), ANSWER_WITHIN);
}

#[tokio::test(start_paused = true)]
async fn a_stalled_answer_fails_the_read() {
    let (maps, _) = client_of(|| Some((200, stalled(r#"{"kind":"#))), SERVICE);
    let start = Instant::now();
    let error = maps.get("web").await.unwrap_err();
    assert!(
        error.to_string().contains("did not answer in full"),
        "{error}"
    );
    assert_eq!(start.elapsed(), ANSWER_WITHIN);
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_not_cut() {
    let behaviour = || Some((200, stalled(ADDED)));
    let (maps, _) = client_of(behaviour, SERVICE);
    let events = maps.watch(&WatchParams::default(), "0").await.unwrap();
    let mut events = std::pin::pin!(events);
    assert!(matches!(events.next().await, Some(Ok(_))));
    let later = ANSWER_WITHIN * 4;
    assert!(timeout(later, events.next()).await.is_err());
}

/// Requests that the limit holds back do not arrive at the server, and their deadline has not begun.
#[tokio::test(start_paused = true)]
async fn a_request_above_the_limit_waits_until_another_ends() {
    let two_at_once = RequestPolicy {
        at_once: Some(2),
        ..SERVICE
    };
    let (maps, requests) = client_of(|| None, two_at_once);
    let start = Instant::now();
    let writes = futures::future::join3(write(&maps), write(&maps), write(&maps));
    let watch = async {
        sleep(ANSWER_WITHIN / 2).await;
        assert_eq!(requests.load(Ordering::Relaxed), 2, "the third waits");
        let wait = Duration::from_secs(1);
        let _never_answered = timeout(wait, maps.watch(&WatchParams::default(), "0")).await;
        assert_eq!(requests.load(Ordering::Relaxed), 3, "a watch does not");
        sleep(ANSWER_WITHIN / 2).await;
        assert_eq!(requests.load(Ordering::Relaxed), 4, "two have ended");
    };
    let ((first, second, third), ()) = futures::future::join(writes, watch).await;
    assert!(first.is_err() && second.is_err() && third.is_err());
    assert_eq!(start.elapsed(), ANSWER_WITHIN * 2);
}

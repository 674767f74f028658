//! Deadline, retries and concurrency limit of requests.
//!
//! Owns them for every request except watches, which end by kube's own idle timeout. One layer around the whole client
//! covers every call. kube's default retry policy is not used: it repeats each "too busy" request up to 15 times over
//! minutes and logs nothing. Nor is the read timeout of kube's configuration: it would end idle watches.

use std::{
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as HttpBody;
use http_body_util::{BodyExt, Either, Full};
use kube::client::{Body, retry::RetryPolicy};
use tokio::{sync::Semaphore, time::timeout};
use tower::{BoxError, Service, retry::Retry, util};

/// Deadline of a service's request, its whole answer included. Longer than any answer of a healthy server, such as a
/// page of a large list; API servers themselves give up after 60 s.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Number and bounds of the pauses of [`Retries::Brief`]; two seconds in total at most.
const BRIEF_RETRIES: u32 = 5;
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(400)];

/// Number of retries after "too busy" answers (429, 503, 504) before the caller gets the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retries {
    /// For callers that have their own retry loop.
    None,
    /// For callers that get one chance themselves, such as webhooks and commands: within two seconds.
    Brief,
}

/// Limits of a client's requests. Watches have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestPolicy {
    pub retries: Retries,
    /// Number of concurrent requests at most; further requests wait.
    pub at_once: Option<usize>,
}

/// A request without a complete answer at its deadline.
#[derive(Debug, thiserror::Error)]
#[error("the API server did not answer in full within {0:?}")]
struct TimedOut(Duration);

/// A client service under a [`RequestPolicy`].
#[derive(Clone, Debug)]
pub(crate) struct Limited<S> {
    within: Option<Duration>,
    permits: Option<Arc<Semaphore>>,
    inner: S,
}

/// The inner service with or without retries.
type Retried<S> = util::Either<Retry<RetryPolicy, S>, S>;

/// An answer whose body is already read, or a stream.
type Answer<B> = Response<Either<Full<Bytes>, B>>;

// === impl RequestPolicy ===

impl RequestPolicy {
    /// Applies the policy to `inner`. `within` is the deadline of each request, counted from its permit on.
    pub(crate) fn wrap<S: Clone>(self, within: Option<Duration>, inner: S) -> Limited<Retried<S>> {
        let inner = match self.retries {
            Retries::None => util::Either::Right(inner),
            Retries::Brief => util::Either::Left(Retry::new(brief(), inner)),
        };
        Limited {
            within,
            permits: self.at_once.map(|count| Arc::new(Semaphore::new(count))),
            inner,
        }
    }
}

// === impl Limited ===

impl<S, B> Service<Request<Body>> for Limited<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Answer<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, ctx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(ctx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let next = self.inner.clone();
        let mut ready = mem::replace(&mut self.inner, next);
        if is_watch(&request) {
            return Box::pin(async move { Ok(ready.call(request).await?.map(Either::Right)) });
        }
        let (permits, within) = (self.permits.clone(), self.within);
        Box::pin(async move {
            // Waiting in `poll_ready` would delay the watches behind this request: kube's client has one queue for all.
            let _permit = match permits {
                Some(permits) => Some(permits.acquire_owned().await?),
                None => None,
            };
            let answer = ready.call(request);
            let Some(within) = within else {
                return Ok(answer.await?.map(Either::Right));
            };
            // A server may stall within an answer: the deadline includes the body.
            let whole = async {
                let (parts, body) = answer.await?.into_parts();
                let body = body.collect().await.map_err(Into::into)?.to_bytes();
                Ok(Response::from_parts(parts, Either::Left(Full::new(body))))
            };
            timeout(within, whole)
                .await
                .unwrap_or_else(|_| Err(TimedOut(within).into()))
        })
    }
}

fn brief() -> RetryPolicy {
    let [shortest, longest] = PAUSES;
    // The server's `Retry-After` is ignored: it has no upper bound.
    RetryPolicy::new(shortest, longest, BRIEF_RETRIES, false)
        .expect("the shortest pause is shorter than the longest")
}

/// True if the answer is an endless stream. Streamed lists are watches too.
fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| pair == "watch=true")
}

#[cfg(test)]
mod tests;

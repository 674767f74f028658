//! How long a request may take, and whether it is sent again.
//!
//! Owns both for every request but watches, which have idle timeouts of their own in kube's watcher. kube's default
//! policy is not used: it sends each "too busy" answer's request again up to 15 times over minutes and says nothing of
//! it. One layer round the whole client instead of a timeout at each call: then none can be forgotten, and the kube
//! configuration's read timeout, which would end idle watches too, is not needed.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as HttpBody;
use http_body_util::{BodyExt, Either, Full};
use kube::client::{Body, retry::RetryPolicy};
use tokio::time::timeout;
use tower::{BoxError, Service, retry::Retry, util};

/// A service's request that is not answered in full within this time has failed. Longer than any answer of a server
/// that is well, pages of large lists among them; API servers themselves give up after 60 s.
pub(crate) const SERVICE_WITHIN: Duration = Duration::from_secs(30);

/// Brief retries: so many, with pauses in these bounds. Two seconds together at most.
const TRIES_AGAIN: u32 = 5;
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(400)];

/// Whether "too busy" answers (429, 503, 504) are asked again before the caller hears of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retries {
    /// For who tries again anyway, with pauses of his own, and holds a permit meanwhile.
    None,
    /// For who is asked once himself, as a webhook and a command are: within two seconds.
    Brief,
}

/// What every request of a client is held to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) within: Option<Duration>,
    pub(crate) retries: Retries,
}

/// The end of a request that took too long.
#[derive(Debug, thiserror::Error)]
#[error("the API server did not answer in full within {0:?}")]
struct Late(Duration);

/// Bounds each request but a watch, its answer's body included.
#[derive(Clone, Debug)]
pub(crate) struct Deadline<S> {
    within: Option<Duration>,
    inner: S,
}

/// Where requests are answered, with or without retries.
type Tried<S> = util::Either<Retry<RetryPolicy, S>, S>;

/// An answer's body: read already, or a stream.
type Answer<B> = Response<Either<Full<Bytes>, B>>;

// === impl Patience ===

impl Patience {
    /// Holds the requests that go into `inner` to it.
    pub(crate) fn wrap<S: Clone>(self, inner: S) -> Deadline<Tried<S>> {
        let inner = match self.retries {
            Retries::None => util::Either::Right(inner),
            Retries::Brief => util::Either::Left(Retry::new(brief(), inner)),
        };
        Deadline {
            within: self.within,
            inner,
        }
    }
}

// === impl Deadline ===

impl<S, B> Service<Request<Body>> for Deadline<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
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
        let within = self.within.filter(|_| !is_watch(&request));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let Some(within) = within else {
                return Ok(answer.await?.map(Either::Right));
            };
            // A server may begin to answer and then fall silent, so that the body is read under the deadline too.
            let whole = async {
                let (parts, body) = answer.await?.into_parts();
                let body = body.collect().await.map_err(Into::into)?.to_bytes();
                Ok(Response::from_parts(parts, Either::Left(Full::new(body))))
            };
            timeout(within, whole)
                .await
                .unwrap_or_else(|_| Err(Late(within).into()))
        })
    }
}

fn brief() -> RetryPolicy {
    let [shortest, longest] = PAUSES;
    // What the server would have waited for (`Retry-After`) is not asked: it knows no bound.
    RetryPolicy::new(shortest, longest, TRIES_AGAIN, false)
        .expect("the shortest pause is shorter than the longest")
}

/// Whether the answer is a stream without end. Streamed lists are watches too.
fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| pair == "watch=true")
}

#[cfg(test)]
mod tests;

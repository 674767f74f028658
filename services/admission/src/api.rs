//! The webhooks that review CRRs and new pods.
//!
//! Owns AdmissionReviews, their metrics and their spans; `admission-rules` decides. A body that is no AdmissionReview
//! gets status 400; a CRR whose facts cannot be read is refused with code 500.

use std::sync::Arc;

use admission_rules::{
    Facts, GateScope, LaunchFacts, Origin, Verdict, gate_pod, needed_pod, review_create,
    review_launch, review_update,
};
use axum::{
    Json, Router,
    body::Bytes,
    extract::DefaultBodyLimit,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use kube::{
    ResourceExt,
    core::{
        DynamicObject,
        admission::{AdmissionRequest, AdmissionResponse, AdmissionReview, Operation},
    },
};
use model::{error_chain::ErrorChain, labels};
use serde_json::json;
use service_kit::trace;
use tokio::time::Instant;
use tracing::{Instrument, Span, debug, info, info_span, warn};
use uuid::Uuid;

use crate::{
    cluster::{Cluster, ReadError},
    metrics::Metrics,
};

/// An object is at most 1.5 MiB in etcd, and an update's review holds two.
const BODY_LIMIT: usize = 4 << 20;

/// The webhooks by path. The CRR's have the paths of OpenKruise's webhook, released and coming.
const WEBHOOKS: [(&str, Webhook); 4] = [
    (
        "/mutate-apps-kruise-io-v1alpha1-containerrecreaterequest",
        Webhook::Crr,
    ),
    (
        "/mutate-apps-kruise-io-containerrecreaterequest",
        Webhook::Crr,
    ),
    ("/mutate-pod", Webhook::PodGate),
    ("/mutate-pod-launch", Webhook::PodLaunch),
];

/// The letters of Kubernetes' random names: they form no words.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The number of random letters at the end of a generated name (Kubernetes).
const NAME_END: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Webhook {
    Crr,
    /// Readiness gates of new pods.
    PodGate,
    /// Launch barriers of new pods.
    PodLaunch,
}

type Request = AdmissionRequest<DynamicObject>;

struct Reviewer {
    cluster: Cluster,
    metrics: Metrics,
    gate_scope: GateScope,
}

pub(crate) fn router(cluster: Cluster, metrics: Metrics, gate_scope: GateScope) -> Router {
    let reviewer = Arc::new(Reviewer {
        cluster,
        metrics,
        gate_scope,
    });
    let mut router = Router::new();
    for (path, webhook) in WEBHOOKS {
        let reviewer = reviewer.clone();
        let answer = async move |headers: HeaderMap, body: Bytes| {
            reviewer.answer(webhook, &headers, &body).await
        };
        router = router.route(path, post(answer));
    }
    router.layer(DefaultBodyLimit::max(BODY_LIMIT))
}

// === impl Reviewer ===

impl Reviewer {
    async fn answer(&self, webhook: Webhook, headers: &HeaderMap, body: &[u8]) -> Response {
        let started_at = Instant::now();
        let request = match request_from(body) {
            Ok(request) => request,
            Err(problem) => {
                self.metrics.reviews.count("failed");
                warn!(problem, "Review cannot be understood");
                let body = Json(json!({ "error": problem }));
                return (StatusCode::BAD_REQUEST, body).into_response();
            }
        };
        let span = span_of(webhook, &request, headers);
        let verdict = self.review(webhook, &request).instrument(span).await;
        let response = response_to(&request, verdict);
        let seconds = started_at.elapsed().as_secs_f64();
        self.metrics.duration.observe(seconds);
        Json(response.into_review()).into_response()
    }

    async fn review(&self, webhook: Webhook, request: &Request) -> Result<Verdict, ReadError> {
        match webhook {
            Webhook::Crr => self.review_crr(request).await.inspect_err(|error| {
                self.metrics.reviews.count("failed");
                warn!(ns = request.namespace, error = %ErrorChain(error), "Review failed");
            }),
            Webhook::PodGate => Ok(self.review_gate(request)),
            Webhook::PodLaunch => Ok(self.review_launch(request)),
        }
    }

    async fn review_crr(&self, request: &Request) -> Result<Verdict, ReadError> {
        let verdict = match (&request.operation, &request.object, &request.old_object) {
            (Operation::Create, Some(object), _) => {
                let namespace = request.namespace.as_deref().unwrap_or_default();
                let facts = match needed_pod(object) {
                    Some(pod) => self.cluster.fetch_facts(namespace, pod).await?,
                    None => Facts::default(),
                };
                let user = request.user_info.username.clone();
                let origin = Origin {
                    requester: user.filter(|user| !user.is_empty()),
                    traceparent: trace::current_traceparent(),
                };
                review_create(object, &facts, &origin)
            }
            (Operation::Update, Some(object), Some(old)) => review_update(object, old),
            // The webhook is not registered for other operations.
            _ => return Ok(Verdict::default()),
        };
        let is_allowed = verdict.is_allowed();
        let result = if is_allowed { "allowed" } else { "refused" };
        self.metrics.reviews.count(result);
        let (ns, crr) = (&request.namespace, &request.name);
        info!(ns, crr, result, "Reviewed");
        Ok(verdict)
    }

    /// Never refuses a pod.
    fn review_gate(&self, request: &Request) -> Verdict {
        let Some(pod) = created_pod(request) else {
            return Verdict::default();
        };
        let patch = gate_pod(pod, self.gate_scope);
        let result = if patch.0.is_empty() { "left" } else { "gated" };
        self.metrics.reviews.count(result);
        debug!(ns = request.namespace, result, "Reviewed a pod");
        Verdict {
            patch,
            ..Verdict::default()
        }
    }

    /// Refuses a pod that would start in the wrong order, or never.
    fn review_launch(&self, request: &Request) -> Verdict {
        let Some(pod) = created_pod(request) else {
            return Verdict::default();
        };
        let traceparent = trace::current_traceparent();
        let facts = LaunchFacts {
            name_end: &random_name_end(),
            traceparent: traceparent.as_deref(),
        };
        let verdict = review_launch(pod, &facts);
        let result = match (verdict.is_allowed(), verdict.patch.0.is_empty()) {
            (false, _) => "refused",
            (true, false) => "ordered",
            (true, true) => "left",
        };
        self.metrics.reviews.count(result);
        let (ns, pod) = (&request.namespace, pod.name_any());
        info!(ns, pod, result, "Reviewed a pod's launch");
        verdict
    }
}

fn request_from(body: &[u8]) -> Result<Request, String> {
    let review: AdmissionReview<DynamicObject> = serde_json::from_slice(body)
        .map_err(|error| format!("the body is no AdmissionReview: {error}"))?;
    let request = review.try_into();
    request.map_err(|_| "the AdmissionReview has no request".to_owned())
}

fn response_to(request: &Request, verdict: Result<Verdict, ReadError>) -> AdmissionResponse {
    let mut response = AdmissionResponse::from(request);
    let (code, message) = match verdict {
        Ok(verdict) if verdict.is_allowed() => {
            response.warnings = Some(verdict.warnings).filter(|warnings| !warnings.is_empty());
            if verdict.patch.0.is_empty() {
                return response;
            }
            let patched = response.with_patch(verdict.patch);
            return patched.expect("a JSON patch is JSON");
        }
        Ok(verdict) => (verdict.code(), verdict.message()),
        Err(error) => (500, ErrorChain(&error).to_string()),
    };
    response.result.code = code;
    response.deny(message)
}

/// The span of a review; none for a review that belongs to no trace. Creations of CRRs and ordered launches begin
/// traces.
fn span_of(webhook: Webhook, request: &Request, headers: &HeaderMap) -> Span {
    let parent = traceparent_of(request, headers);
    if parent.is_none() && !begins_trace(webhook, &request.operation) {
        return Span::none();
    }
    let span = info_span!(
        "review",
        ns = request.namespace,
        kind = request.kind.kind,
        name = request.name,
        operation = json!(request.operation).as_str(),
    );
    if let Some(parent) = parent {
        trace::set_parent(&span, parent);
    }
    span
}

fn begins_trace(webhook: Webhook, operation: &Operation) -> bool {
    match webhook {
        Webhook::Crr => *operation == Operation::Create,
        Webhook::PodGate => false,
        Webhook::PodLaunch => true,
    }
}

/// The trace of the object's creation, or else that of the API server.
fn traceparent_of<'a>(request: &'a Request, headers: &'a HeaderMap) -> Option<&'a str> {
    let old = request.old_object.as_ref();
    let of_object = old.and_then(|old| old.annotations().get(labels::TRACE_PARENT));
    let of_server = || headers.get("traceparent")?.to_str().ok();
    of_object.map(String::as_str).or_else(of_server)
}

fn created_pod(request: &Request) -> Option<&DynamicObject> {
    let is_creation = request.operation == Operation::Create && request.sub_resource.is_none();
    request.object.as_ref().filter(|_| is_creation)
}

fn random_name_end() -> String {
    let bytes = Uuid::new_v4().into_bytes();
    let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
    bytes.iter().take(NAME_END).map(letter).collect()
}

#[cfg(test)]
mod tests;

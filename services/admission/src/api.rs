//! The webhooks' port: AdmissionReview in, AdmissionReview out, for requests and for pods.
//!
//! Owns the envelope. A review that cannot be understood is answered 400; one whose facts cannot be read, 500.

mod pods;

use std::sync::Arc;

use admission_rules::{Facts, GateScope, Request, Verdict, needed_pod, review};
use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode},
    routing::post,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use model::{error_chain::ErrorChain, labels};
use serde_json::{Value, json};
use service_kit::trace;
use tokio::time::Instant;
use tracing::{Instrument, Span, info, info_span, warn};

use crate::{cluster::Cluster, metrics::Metrics};

/// An object is at most 1.5 MiB in etcd, and an update's review holds two.
const BODY_LIMIT: usize = 4 << 20;

/// The paths that OpenKruise's webhook is called by, released and coming.
const PATHS: [&str; 2] = [
    "/mutate-apps-kruise-io-v1alpha1-containerrecreaterequest",
    "/mutate-apps-kruise-io-containerrecreaterequest",
];

/// The path that new pods get their readiness gate at.
const POD_PATH: &str = "/mutate-pod";

/// The path that new pods get their launch barriers at.
const LAUNCH_PATH: &str = "/mutate-pod-launch";

struct Shared {
    cluster: Cluster,
    metrics: Metrics,
    gate_scope: GateScope,
}

type Answer = (StatusCode, axum::Json<Value>);

pub(crate) fn router(cluster: Cluster, metrics: Metrics, gate_scope: GateScope) -> Router {
    let routes = PATHS.iter().fold(Router::new(), |router, path| {
        router.route(path, post(answer_crr_review))
    });
    let shared = Shared {
        cluster,
        metrics,
        gate_scope,
    };
    routes
        .route(POD_PATH, post(answer_pod_review))
        .route(LAUNCH_PATH, post(answer_launch_review))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(Arc::new(shared))
}

async fn answer_crr_review(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let decide = async |request: &Value| decide_crr(&shared, request).await;
    answer_review(&shared, &headers, &body, decide).await
}

async fn answer_pod_review(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let decide = async |request: &Value| {
        let verdict = pods::decide_gate(&shared.metrics, shared.gate_scope, request);
        response_of(&verdict)
    };
    answer_review(&shared, &headers, &body, decide).await
}

async fn answer_launch_review(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let decide = async |request: &Value| {
        // An ordered launch is a trace from here on.
        let decide = || pods::decide_launch(&shared.metrics, request);
        response_of(&review_span(request).in_scope(decide))
    };
    answer_review(&shared, &headers, &body, decide).await
}

/// Opens the envelope, has the request decided, and puts the response into one.
async fn answer_review(
    shared: &Shared,
    headers: &HeaderMap,
    body: &[u8],
    decide: impl AsyncFnOnce(&Value) -> Value,
) -> Answer {
    let started_at = Instant::now();
    let review: Value = match serde_json::from_slice(body) {
        Ok(review) => review,
        Err(error) => return not_understood(shared, &format!("the body is not JSON: {error}")),
    };
    let request = &review["request"];
    let Some(uid) = request["uid"].as_str().filter(|uid| !uid.is_empty()) else {
        return not_understood(shared, "request.uid is missing: this is no AdmissionReview");
    };
    if !request["operation"].is_string() {
        return not_understood(shared, "request.operation is missing");
    }
    let mut response = decide(request).instrument(span_of(request, headers)).await;
    response["uid"] = json!(uid);
    shared
        .metrics
        .duration
        .observe(started_at.elapsed().as_secs_f64());
    let answer = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
    });
    (StatusCode::OK, axum::Json(answer))
}

fn not_understood(shared: &Shared, problem: &str) -> Answer {
    shared.metrics.count("failed");
    warn!(problem, "Review cannot be understood");
    (
        StatusCode::BAD_REQUEST,
        axum::Json(json!({ "error": problem })),
    )
}

/// The span of a review. Only a request's creation begins a trace; its later reviews belong to that one, and what
/// belongs to no trace has no span.
fn span_of(request: &Value, headers: &HeaderMap) -> Span {
    let parent = trace_parent_of(request, headers);
    if parent.is_none() && !is_creation_of_crr(request) {
        return Span::none();
    }
    let span = review_span(request);
    if let Some(parent) = parent {
        trace::set_parent(&span, parent);
    }
    span
}

fn review_span(request: &Value) -> Span {
    info_span!(
        "review",
        ns = request["namespace"].as_str(),
        kind = request["kind"]["kind"].as_str(),
        name = request["name"].as_str(),
        operation = request["operation"].as_str(),
    )
}

/// The trace that an object was created in, or else that of the API server.
fn trace_parent_of<'a>(request: &'a Value, headers: &'a HeaderMap) -> Option<&'a str> {
    let of_object = request["oldObject"]["metadata"]["annotations"][labels::TRACE_PARENT].as_str();
    let of_server = || headers.get("traceparent")?.to_str().ok();
    of_object.or_else(of_server)
}

fn is_creation_of_crr(request: &Value) -> bool {
    request["operation"] == "CREATE" && request["kind"]["kind"] == "ContainerRecreateRequest"
}

/// The response to one review of a request, without its uid.
async fn decide_crr(shared: &Shared, request: &Value) -> Value {
    let object = &request["object"];
    let question = match request["operation"].as_str() {
        Some("CREATE") => Request::Create { object },
        Some("UPDATE") => Request::Update {
            object,
            old: &request["oldObject"],
        },
        // Deletions and connections are not registered for; nothing is to be said of them.
        Some(_) | None => return json!({ "allowed": true }),
    };
    let namespace = request["namespace"].as_str().unwrap_or_default();
    let facts = match needed_pod(&question) {
        None => Facts::default(),
        Some(pod) => {
            let trace_parent = trace::current_traceparent();
            match shared
                .cluster
                .fetch_facts(namespace, pod, trace_parent)
                .await
            {
                Ok(facts) => Facts {
                    requested_by: user_of(request),
                    ..facts
                },
                Err(error) => {
                    shared.metrics.count("failed");
                    warn!(ns = namespace, error = %ErrorChain(&error), "Review failed");
                    return refusal(500, &ErrorChain(&error).to_string());
                }
            }
        }
    };
    let verdict = review(&question, &facts);
    let result = if verdict.is_allowed() {
        "allowed"
    } else {
        "refused"
    };
    shared.metrics.count(result);
    info!(
        ns = namespace,
        crr = request["name"].as_str(),
        result,
        "Reviewed"
    );
    response_of(&verdict)
}

/// Whose request it is, as the API server authenticated them.
fn user_of(request: &Value) -> Option<String> {
    let name = request["userInfo"]["username"].as_str();
    name.filter(|name| !name.is_empty()).map(str::to_owned)
}

fn response_of(verdict: &Verdict) -> Value {
    if !verdict.is_allowed() {
        return refusal(verdict.code(), &verdict.message());
    }
    let mut response = json!({ "allowed": true });
    if !verdict.warnings.is_empty() {
        response["warnings"] = json!(verdict.warnings);
    }
    if !verdict.patch.0.is_empty() {
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(BASE64_STANDARD.encode(json!(verdict.patch).to_string()));
    }
    response
}

fn refusal(code: u16, message: &str) -> Value {
    json!({ "allowed": false, "status": { "code": code, "message": message } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(traceparent: Option<&'static str>) -> HeaderMap {
        let value = traceparent.map(axum::http::HeaderValue::from_static);
        value
            .map(|value| ("traceparent".parse().unwrap(), value))
            .into_iter()
            .collect()
    }

    #[test]
    fn a_later_review_belongs_to_the_trace_of_the_creation() {
        let old = json!({"metadata": {"annotations": {labels::TRACE_PARENT: "00-creation"}}});
        let update = json!({"operation": "UPDATE", "oldObject": old});
        let create = json!({"operation": "CREATE", "oldObject": null});
        let (server, none) = (headers(Some("00-server")), headers(None));
        assert_eq!(trace_parent_of(&update, &server), Some("00-creation"));
        assert_eq!(trace_parent_of(&update, &none), Some("00-creation"));
        assert_eq!(trace_parent_of(&create, &server), Some("00-server"));
        assert_eq!(trace_parent_of(&create, &none), None);
    }

    #[test]
    fn only_the_creation_of_a_request_begins_a_trace() {
        let begins = |operation: &str, kind: &str| {
            let request = json!({"operation": operation, "kind": {"kind": kind}});
            is_creation_of_crr(&request)
        };
        assert!(begins("CREATE", "ContainerRecreateRequest"));
        assert!(!begins("UPDATE", "ContainerRecreateRequest"));
        assert!(!begins("CREATE", "Pod"));
    }

    #[test]
    fn a_refusal_has_the_code_and_every_fault() {
        let object = json!({"spec": {"podName": "", "containers": []}});
        let verdict = review(&Request::Create { object: &object }, &Default::default());
        let response = response_of(&verdict);
        assert_eq!(
            (&response["allowed"], &response["status"]["code"]),
            (&json!(false), &json!(400))
        );
        let message = response["status"]["message"].as_str().unwrap();
        assert_eq!(message.lines().count(), 2, "{message}");
    }
}

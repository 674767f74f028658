//! The webhook that converts CRRs between v1alpha1 and v1beta1.
//!
//! Owns the route and its metrics; `k8s_api::versions` converts. It needs neither API server nor bus, so that CRRs
//! can be read while these are down.

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::post,
};
use k8s_api::versions::{Answer, CONVERT_PATH, NotAReview, answer};
use model::error_chain::ErrorChain;
use serde_json::json;
use tokio::{task::spawn_blocking, time::Instant};
use tracing::{debug, error, warn};

use crate::metrics::Metrics;

/// A list is one review: this suffices for some ten thousands of CRRs.
const BODY_LIMIT: usize = 64 << 20;

/// Larger bodies are converted on a blocking thread.
const LARGE: usize = 256 << 10;

pub(crate) fn router(metrics: Metrics) -> Router {
    Router::new()
        .route(CONVERT_PATH, post(answer_conversion))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(metrics)
}

async fn answer_conversion(State(metrics): State<Metrics>, body: Bytes) -> Response {
    let started_at = Instant::now();
    let answered = if body.len() < LARGE {
        answer(&body)
    } else {
        match spawn_blocking(move || answer(&body)).await {
            Ok(answered) => answered,
            Err(error) => {
                error!(error = %ErrorChain(&error), "Conversion ended without an answer");
                metrics.conversions.count("failed");
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
        }
    };
    let response = response_to(&metrics, answered);
    let seconds = started_at.elapsed().as_secs_f64();
    metrics.conversion_duration.observe(seconds);
    response
}

fn response_to(metrics: &Metrics, answered: Result<Answer, NotAReview>) -> Response {
    let answer = match answered {
        Ok(answer) => answer,
        Err(problem) => {
            metrics.conversions.count("failed");
            warn!(%problem, "Conversion cannot be understood");
            let body = axum::Json(json!({ "error": problem.to_string() }));
            return (StatusCode::BAD_REQUEST, body).into_response();
        }
    };
    for warning in &answer.warnings {
        warn!(warning, "Converted with a loss of meaning");
    }
    if let Some(failure) = &answer.failure {
        metrics.conversions.count("failed");
        warn!(failure, "Conversion failed");
    } else {
        metrics.conversions.count("converted");
        debug!(bytes = answer.body.len(), "Converted");
    }
    ([(CONTENT_TYPE, "application/json")], answer.body).into_response()
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::Request};
    use prometheus_client::registry::Registry;
    use serde_json::Value;
    use tower::ServiceExt;

    use super::*;

    async fn ask(router: &Router, body: String) -> (StatusCode, Value) {
        let request = Request::post(CONVERT_PATH).body(Body::from(body)).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await;
        (status, serde_json::from_slice(&body.unwrap()).unwrap())
    }

    fn review(count: usize) -> String {
        let object = json!({
            "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ContainerRecreateRequest",
            "metadata": {
                "name": "restart", "namespace": "shop", "uid": "u",
                "annotations": {
                    "crr.apps.kruise.io/sync-container-statuses":
                        r#"[{"name":"app","ready":true,"restartCount":1,"containerID":"containerd://a"}]"#,
                },
            },
            "spec": {"podName": "web", "containers": [{"name": "app"}]},
            "status": {"phase": "Recreating"},
        });
        let objects = vec![object; count];
        let request = json!({
            "uid": "the-uid", "desiredAPIVersion": "apps.kruise.io/v1beta1", "objects": objects,
        });
        json!({ "kind": "ConversionReview", "request": request }).to_string()
    }

    /// Small and large bodies go different ways.
    #[tokio::test]
    async fn a_review_is_answered_whatever_its_size() {
        let router = router(Metrics::register(&mut Registry::default()));
        for count in [1, 2000] {
            let (status, said) = ask(&router, review(count)).await;
            assert_eq!(status, StatusCode::OK);
            let objects = said["response"]["convertedObjects"].as_array().unwrap();
            assert_eq!(objects.len(), count);
            let snapshot = &objects[count - 1]["status"]["containerStatusSnapshot"];
            assert_eq!(snapshot[0]["name"], "app");
        }
    }

    #[tokio::test]
    async fn what_is_no_review_is_a_bad_request() {
        let router = router(Metrics::register(&mut Registry::default()));
        let (status, said) = ask(&router, "{}".to_owned()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let error = said["error"].as_str().unwrap();
        assert!(error.contains("expected is a ConversionReview"), "{error}");
    }

    /// The figure is for the reader (`--no-capture`); nothing is asserted of it.
    #[tokio::test]
    async fn one_object_takes_this_long() {
        const ROUNDS: u32 = 1000;
        let router = router(Metrics::register(&mut Registry::default()));
        let body = review(1);
        let started_at = Instant::now();
        for _ in 0..ROUNDS {
            let (status, _) = ask(&router, body.clone()).await;
            assert_eq!(status, StatusCode::OK);
        }
        println!("one conversion: {:?}", started_at.elapsed() / ROUNDS);
    }
}

//! Which trace is a request's, and why there is none to show.

use k8s_api::crd::ContainerRecreateRequest;
use kube::ResourceExt;
use model::labels;
use trace_tree::TraceParent;

use crate::failure::Failure;

/// Why a trace cannot be shown. `jaeger` is where it was looked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoTrace {
    #[error(
        "request {request} has no trace: it lacks the annotation {}, which admission writes when it sends traces \
         (--otlp-endpoint)",
        labels::TRACE_PARENT
    )]
    NoAnnotation { request: String },
    #[error(
        "request {request} has no trace: its annotation {} is {text:?}; a W3C traceparent such as \
         00-<32 digits>-<16 digits>-01 is needed",
        labels::TRACE_PARENT
    )]
    Unreadable { request: String, text: String },
    #[error(
        "trace {id} of request {request} was not sampled: nobody has sent spans of it, for its traceparent says so"
    )]
    NotSampled { request: String, id: String },
    #[error(
        "Jaeger at {jaeger} has no trace {id} of request {request}: its spans have not arrived yet (they come some \
         seconds late), the services send them elsewhere, or Jaeger has forgotten it"
    )]
    NotThere {
        request: String,
        id: String,
        jaeger: String,
    },
    #[error(
        "Jaeger at {jaeger} cannot be reached: {why}\n  \
         say where it is with --jaeger URL or --jaeger-service NAMESPACE/NAME:PORT"
    )]
    JaegerAway { jaeger: String, why: String },
}

/// The id of a request's trace, from the annotation that admission wrote.
pub(crate) fn trace_of(request: &ContainerRecreateRequest) -> Result<String, NoTrace> {
    let name = request.name_any();
    let Some(text) = request.annotations().get(labels::TRACE_PARENT) else {
        return Err(NoTrace::NoAnnotation { request: name });
    };
    let Some(parent) = TraceParent::parse(text) else {
        let text = text.clone();
        return Err(NoTrace::Unreadable {
            request: name,
            text,
        });
    };
    let id = parent.trace_id;
    if parent.is_sampled {
        Ok(id)
    } else {
        Err(NoTrace::NotSampled { request: name, id })
    }
}

impl From<NoTrace> for Failure {
    fn from(error: NoTrace) -> Self {
        Self::Missing(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_annotation_tells_the_trace_or_why_there_is_none() {
        const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
        let request = || "x".to_owned();
        let id = || TRACE.to_owned();
        let cases = [
            (
                Some(format!("00-{TRACE}-b7ad6b7169203331-01")),
                Ok(TRACE.to_owned()),
            ),
            (
                Some(format!("00-{TRACE}-b7ad6b7169203331-00")),
                Err(NoTrace::NotSampled {
                    request: request(),
                    id: id(),
                }),
            ),
            (
                Some("soon".to_owned()),
                Err(NoTrace::Unreadable {
                    request: request(),
                    text: "soon".to_owned(),
                }),
            ),
            (None, Err(NoTrace::NoAnnotation { request: request() })),
        ];
        for (text, meant) in cases {
            let annotations = text.map(|text| json!({ labels::TRACE_PARENT: text }));
            let crr = serde_json::from_value(json!({
                "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
                "metadata": { "name": "x", "annotations": annotations },
                "spec": { "podName": "web", "containers": [] },
            }))
            .unwrap();
            assert_eq!(trace_of(&crr), meant);
        }
    }
}

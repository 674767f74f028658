//! The W3C `traceparent` of a span, so that a trace continues across NATS headers and annotations.
//!
//! Owns the only use of OpenTelemetry's propagator.

use std::collections::HashMap;

use opentelemetry::{propagation::TextMapPropagator, trace::TraceContextExt};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

const TRACE_PARENT: &str = "traceparent";

/// The `traceparent` of the current span; `None` if the span belongs to no trace.
pub fn current_traceparent() -> Option<String> {
    traceparent_of(&Span::current())
}

/// The `traceparent` of `span`; `None` if the span belongs to no trace.
pub fn traceparent_of(span: &Span) -> Option<String> {
    let mut carrier = HashMap::new();
    TraceContextPropagator::new().inject_context(&span.context(), &mut carrier);
    carrier.remove(TRACE_PARENT)
}

/// Makes `span`, which must not be entered yet, the child of a remote span. An invalid `traceparent` is ignored.
pub fn set_parent(span: &Span, traceparent: &str) {
    let carrier = HashMap::from([(TRACE_PARENT.to_owned(), traceparent.to_owned())]);
    let context = TraceContextPropagator::new().extract(&carrier);
    if context.span().span_context().is_valid() {
        // Fails only without a trace layer or if the span is disabled: then there is no trace to join.
        let _nothing_to_join = span.set_parent(context);
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing_subscriber::{Registry, layer::SubscriberExt};

    use super::*;

    #[test]
    fn a_child_keeps_the_remote_trace_id() {
        let provider = SdkTracerProvider::builder().build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        tracing::subscriber::with_default(Registry::default().with(layer), || {
            let span = tracing::info_span!("child");
            set_parent(
                &span,
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            );
            let traceparent = traceparent_of(&span).unwrap();
            assert!(
                traceparent.starts_with("00-0af7651916cd43dd8448eb211c80319c-"),
                "{traceparent}"
            );
            assert!(!traceparent.contains("b7ad6b7169203331"), "{traceparent}");
        });
    }

    #[test]
    fn an_invalid_traceparent_is_ignored() {
        set_parent(&Span::none(), "invalid");
        assert_eq!(traceparent_of(&Span::none()), None);
    }
}

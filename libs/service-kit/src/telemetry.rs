//! Logs to stdout, and traces by OTLP.
//!
//! Owns the subscriber and the exporter. Without its collector a service loses spans and works on.

use std::time::Duration;

use model::error_chain::ErrorChain;
use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider},
};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{FilterExt, LevelFilter, Targets},
    layer::{Filter, SubscriberExt},
    util::SubscriberInitExt,
};

use crate::{KitArgs, LogFormat};

/// Delay after which finished spans are sent together.
const EXPORT_DELAY: Duration = Duration::from_secs(1);

/// Longest flush of the last spans at shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The NATS library. It repeats at info what `bus` logs, and is limited to warn unless the filter names it.
const BUS_LIBRARY: &str = "async_nats";

/// Filter of log lines.
type LogFilter = Box<dyn Filter<Registry> + Send + Sync>;

/// Why telemetry was not set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TelemetryError {
    #[error("--log-level {directives:?} is not a log filter")]
    Filter {
        directives: String,
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    #[error("--otlp-endpoint {endpoint:?} cannot be used")]
    Exporter {
        endpoint: String,
        #[source]
        source: opentelemetry_otlp::ExporterBuildError,
    },
    #[error("logging was set up twice")]
    Twice(#[source] tracing_subscriber::util::TryInitError),
}

/// The exporter, to be flushed at shutdown.
pub(crate) struct Telemetry {
    provider: Option<SdkTracerProvider>,
}

/// Installs logs and, with an endpoint, traces. Call it inside the runtime, which the exporter needs.
pub(crate) fn start(service: &'static str, args: &KitArgs) -> Result<Telemetry, TelemetryError> {
    let filter = log_filter(&args.log_level)?;
    let lines = tracing_subscriber::fmt::layer();
    let format = match args.log_format {
        LogFormat::Text => lines.with_ansi(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let format = format.with_filter(filter);
    let provider = match &args.otlp_endpoint {
        Some(endpoint) => Some(tracer_provider(service, endpoint)?),
        None => None,
    };
    let traces = provider.as_ref().map(|provider| {
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("podwright"))
            .with_location(false)
            .with_threads(false)
            .with_filter(own_spans(service))
    });
    tracing_subscriber::registry()
        .with(format)
        .with(traces)
        .try_init()
        .map_err(TelemetryError::Twice)?;
    Ok(Telemetry { provider })
}

fn log_filter(directives: &str) -> Result<LogFilter, TelemetryError> {
    let wanted = EnvFilter::try_new(directives).map_err(|source| TelemetryError::Filter {
        directives: directives.to_owned(),
        source,
    })?;
    if directives.contains(BUS_LIBRARY) {
        return Ok(Box::new(wanted));
    }
    let not_twice = Targets::new()
        .with_default(LevelFilter::TRACE)
        .with_target(BUS_LIBRARY, LevelFilter::WARN);
    Ok(Box::new(wanted.and(not_twice)))
}

/// Spans of our own crates at info: spans inside libraries do not belong to the trace of a CRR.
fn own_spans(service: &str) -> EnvFilter {
    let own = service.replace('-', "_");
    EnvFilter::new(format!("off,{own}=info,bus=info,cri=info"))
}

fn tracer_provider(
    service: &'static str,
    endpoint: &str,
) -> Result<SdkTracerProvider, TelemetryError> {
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .build()
        .map_err(|source| TelemetryError::Exporter {
            endpoint: endpoint.to_owned(),
            source,
        })?;
    let batch = BatchConfigBuilder::default().with_scheduled_delay(EXPORT_DELAY);
    let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batch.build());
    let resource = Resource::builder()
        .with_service_name(service)
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    Ok(SdkTracerProvider::builder()
        .with_span_processor(processor.build())
        .with_resource(resource)
        .build())
}

// === impl Telemetry ===

impl Telemetry {
    /// Sends the last spans, or gives up after a short time if the collector does not answer.
    pub(crate) async fn flush(self) {
        let Some(provider) = self.provider else {
            return;
        };
        let flushed =
            tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(FLUSH_TIMEOUT));
        if let Ok(Err(error)) = flushed.await {
            tracing::debug!(error = %ErrorChain(&error), "The last spans were not sent");
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::{Level, enabled, subscriber::with_default};

    use super::*;

    /// Expects whether the NATS library and `bus` log at info and at warn.
    fn check(directives: &str, expected: [bool; 4]) {
        let layer = tracing_subscriber::fmt::layer();
        let filtered = layer.with_filter(log_filter(directives).unwrap());
        let subscriber = Registry::default().with(filtered);
        let enabled = with_default(subscriber, || {
            [
                enabled!(target: "async_nats", Level::INFO),
                enabled!(target: "async_nats", Level::WARN),
                enabled!(target: "bus::connection", Level::INFO),
                enabled!(target: "bus::connection", Level::WARN),
            ]
        });
        assert_eq!(enabled, expected, "{directives}");
    }

    #[test]
    fn the_nats_library_logs_at_info_only_if_the_filter_names_it() {
        check("info", [false, true, true, true]);
        check("info,async_nats=debug", [true, true, true, true]);
        check("warn", [false, true, false, true]);
        check("off", [false; 4]);
        check("error,bus=info", [false, false, true, true]);
    }

    #[test]
    fn an_invalid_filter_is_quoted_in_the_error() {
        let error = log_filter("bus=loud").err().unwrap();
        assert_eq!(
            error.to_string(),
            r#"--log-level "bus=loud" is not a log filter"#
        );
    }
}

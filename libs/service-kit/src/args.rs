//! The flags that every service has.
//!
//! Owns their names, defaults and help texts. Each flag has an environment variable.

use std::net::SocketAddr;

use clap::ValueEnum;

/// Flags of logging, tracing and the admin port.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Watching")]
pub struct KitArgs {
    /// Log filter: a level, or directives such as `info,bus=debug`. The NATS library logs from `warn` on unless the
    /// filter names it, as in `info,async_nats=debug`.
    #[arg(
        long,
        env = "PODWRIGHT_LOG_LEVEL",
        default_value = "info",
        value_name = "FILTER"
    )]
    pub log_level: String,

    /// Format of log lines.
    #[arg(long, env = "PODWRIGHT_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// Address of /livez, /readyz, /metrics and /state.
    #[arg(
        long,
        env = "PODWRIGHT_ADMIN_LISTEN",
        default_value = "0.0.0.0:9090",
        value_name = "ADDRESS"
    )]
    pub admin_listen: SocketAddr,

    /// Receiver of traces by OTLP over gRPC, such as http://jaeger:4317. Default: no traces.
    #[arg(long, env = "PODWRIGHT_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Plain text.
    Text,
    /// One JSON object per line.
    Json,
}

/// Arguments of a service, which include those of the kit.
pub trait HasKitArgs: clap::Parser + std::fmt::Debug {
    fn kit(&self) -> &KitArgs;
}

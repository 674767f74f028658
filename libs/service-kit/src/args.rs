//! The flags that every service takes.
//!
//! Owns their names, defaults and help texts. Each has an environment variable of the same meaning.

use std::net::SocketAddr;

use clap::ValueEnum;

/// Flags of logging, tracing and the admin port.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Watching")]
pub struct KitArgs {
    /// What to log: a level, or directives such as `info,bus=debug`. The library of the bus is logged from `warn` on
    /// unless it is named, as in `info,async_nats=debug`.
    #[arg(
        long,
        env = "PODWRIGHT_LOG_LEVEL",
        default_value = "info",
        value_name = "FILTER"
    )]
    pub log_level: String,

    /// How log lines look.
    #[arg(long, env = "PODWRIGHT_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// Where /livez, /readyz, /metrics and /state are served.
    #[arg(
        long,
        env = "PODWRIGHT_ADMIN_LISTEN",
        default_value = "0.0.0.0:9090",
        value_name = "ADDRESS"
    )]
    pub admin_listen: SocketAddr,

    /// Where traces are sent by OTLP over gRPC, such as http://jaeger:4317; not sent without it.
    #[arg(long, env = "PODWRIGHT_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Arguments of a service, which hold the kit's.
pub trait HasKitArgs: clap::Parser + std::fmt::Debug {
    fn kit(&self) -> &KitArgs;
}

//! The flags of a service's connection to the bus.
//!
//! Owns their names and which exclude each other. Files named here are read by `connection`.

use std::path::PathBuf;

/// Where NATS is and who we are there.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Bus")]
#[group(id = "bus")]
pub struct Args {
    /// NATS servers, comma-separated: nats:// or tls://.
    #[arg(
        long,
        env = "PODWRIGHT_NATS_URL",
        default_value = "nats://127.0.0.1:4222",
        value_delimiter = ',',
        value_name = "URL"
    )]
    pub nats_url: Vec<String>,

    /// User at NATS; with --nats-password-file.
    #[arg(
        long,
        env = "PODWRIGHT_NATS_USER",
        requires = "nats_password_file",
        value_name = "NAME"
    )]
    pub nats_user: Option<String>,

    /// A file with the user's password in its first line, read again for each connection.
    #[arg(long, env = "PODWRIGHT_NATS_PASSWORD_FILE", value_name = "FILE")]
    pub nats_password_file: Option<PathBuf>,

    /// A NATS credentials file (JWT and nkey), read again for each connection; instead of user and password.
    #[arg(
        long,
        env = "PODWRIGHT_NATS_CREDENTIALS",
        conflicts_with = "nats_user",
        value_name = "FILE"
    )]
    pub nats_credentials: Option<PathBuf>,

    /// A file with an nkey seed in its first line, read again for each connection; instead of user and credentials.
    #[arg(
        long,
        env = "PODWRIGHT_NATS_NKEY_FILE",
        conflicts_with_all = ["nats_user", "nats_credentials"],
        value_name = "FILE"
    )]
    pub nats_nkey_file: Option<PathBuf>,

    /// The certificates that sign the servers', read again for each connection; makes TLS a must.
    #[arg(long, env = "PODWRIGHT_NATS_CA", value_name = "FILE")]
    pub nats_ca: Option<PathBuf>,
}

impl Args {
    /// A server without authentication, for tests and tools.
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            nats_url: vec![url.into()],
            ..Self::default()
        }
    }
}

//! The connection: made once, kept for ever.
//!
//! Owns reconnection with full jitter, so that thousands of nodes do not come back in step, and the log of
//! what the connection goes through.

use std::{
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use async_nats::{Client, ConnectOptions, Event, ReconnectToServer, Server, connection::State};
use model::{error_chain::ErrorChain, retry::Doubling};
use tokio::sync::watch;
use tracing::{debug, info, warn};

use crate::{
    Args,
    identity::{Identity, SecretError},
    subjects,
};

/// Upper bounds of the pauses between attempts to connect. With the longest, 10,000 nodes reconnect at about 700 a
/// second.
const PAUSES: Doubling = Doubling::new(Duration::from_millis(50), Duration::from_secs(30));

/// A connection that died without a word is noticed within three of these: well before a silent node is given up.
const PING_EVERY: Duration = Duration::from_secs(5);

/// Which server to try next; `None` leaves that to the library.
type NextServer = Pin<Box<dyn Future<Output = Option<ReconnectToServer>> + Send + Sync>>;

/// A connection to the bus; clones share it.
#[derive(Clone, Debug)]
pub struct Bus {
    pub(crate) client: Client,
    trouble: Arc<watch::Sender<Option<String>>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("there is no identity to connect with")]
    Credentials(#[source] SecretError),
    #[error("the bus cannot be connected to with these settings")]
    Settings(#[source] async_nats::ConnectError),
}

// === impl Bus ===

impl Bus {
    /// Begins to connect and returns at once: a server that is away is waited for in the background.
    ///
    /// The client's name is the service's, on nodes `<service>/<node>`: see [`subjects::inbox`].
    ///
    /// # Errors
    /// Credentials that cannot be read, or an unusable address. The CA's file may come later. All files may change:
    /// they are read for each attempt.
    pub async fn connect(args: &Args, client_name: &str) -> Result<Self, ConnectError> {
        let trouble = Arc::new(watch::Sender::new(None));
        let mut options = identify(args)
            .await?
            .name(client_name)
            .custom_inbox_prefix(subjects::inbox(client_name))
            .ping_interval(PING_EVERY)
            .retry_on_initial_connect()
            .max_reconnects(None)
            .reconnect_delay_callback(pause_before)
            .reconnect_to_server_callback(tell_trouble(args.nats_ca.clone(), trouble.clone()))
            .event_callback(log_event);
        if let Some(ca) = &args.nats_ca {
            options = options.add_root_certificates(ca.clone()).require_tls(true);
        }
        let client = options
            .connect(args.nats_url.as_slice())
            .await
            .map_err(ConnectError::Settings)?;
        Ok(Self { client, trouble })
    }

    /// Why the last attempt to connect failed; `None` before the first has failed.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.borrow().clone()
    }

    /// Whether the server is there, as far as is known: a silent death is noticed by pings.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }
}

/// Options with our identity, whose files are there now; what is wrong with them later is trouble.
async fn identify(args: &Args) -> Result<ConnectOptions, ConnectError> {
    let Some(identity) = Identity::of(args) else {
        return Ok(ConnectOptions::new());
    };
    let proof = identity.prove(b"").await;
    proof.map_err(ConnectError::Credentials)?;
    let answer = move |nonce| identity.clone().answer(nonce);
    Ok(ConnectOptions::with_auth_callback(answer))
}

/// A random pause below the doubling bound of this attempt.
fn pause_before(attempt: usize) -> Duration {
    let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
    PAUSES.pause(attempt).mul_f64(rand::random::<f64>())
}

/// Called before each attempt, with what came of the last one. An event would tell "TLS error" and not which.
fn tell_trouble(
    ca: Option<PathBuf>,
    trouble: Arc<watch::Sender<Option<String>>>,
) -> impl Fn(Vec<Server>, async_nats::ServerInfo) -> NextServer + Send + Sync + 'static {
    move |servers, _| {
        let (ca, trouble) = (ca.clone(), trouble.clone());
        Box::pin(async move {
            // None has failed yet.
            let mut reason = servers
                .iter()
                .find_map(|server| server.last_error.clone())?;
            if let Some(fault) = fault_of_ca(ca.as_deref()).await {
                reason = fault;
            }
            warn!(error = reason, "Failed to connect to the bus, trying again");
            trouble.send_replace(Some(reason));
            None
        })
    }
}

/// The library tells neither which file it cannot read nor that a file holds nothing.
async fn fault_of_ca(ca: Option<&Path>) -> Option<String> {
    let ca = ca?;
    match tokio::fs::read_to_string(ca).await {
        Ok(text) if text.contains("-----BEGIN CERTIFICATE-----") => None,
        Ok(_) => Some(format!("{} holds no certificate (PEM)", ca.display())),
        Err(error) => Some(format!("failed to read {}: {error}", ca.display())),
    }
}

async fn log_event(event: Event) {
    match event {
        Event::Connected => info!("Connected to the bus"),
        Event::Disconnected => warn!("Disconnected from the bus"),
        // A permission violation is told here only; the call itself merely times out.
        Event::ServerError(error) => {
            warn!(error = %ErrorChain(&error), "The bus reported an error");
        }
        // Without its cause; `tell_trouble` has it.
        Event::ClientError(error) => debug!(%error, "The bus cannot be reached"),
        other => warn!(event = %other, "Unexpected event of the bus connection"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        for attempt in [0, 1, 5, 40, usize::MAX] {
            assert!(pause_before(attempt) <= PAUSES.longest);
        }
        assert!(pause_before(0) <= PAUSES.first);
    }
}

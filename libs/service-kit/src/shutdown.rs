//! Cooperative shutdown, shared by all tasks of a service.

use model::error_chain::ErrorChain;
use tokio::{
    select,
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tracing::{info, warn};

/// A shutdown begins once, by a signal or by the end of a task. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    begun: watch::Sender<bool>,
}

// === impl Shutdown ===

impl Shutdown {
    /// A shutdown that begins with SIGTERM or SIGINT.
    #[expect(clippy::disallowed_methods, reason = "it lives as long as the process")]
    pub(crate) fn on_signals() -> Self {
        let shutdown = Self::default();
        let on_signal = shutdown.clone();
        tokio::spawn(async move {
            match (
                signal(SignalKind::terminate()),
                signal(SignalKind::interrupt()),
            ) {
                (Ok(mut terminate), Ok(mut interrupt)) => {
                    select! {
                        _ = terminate.recv() => info!("Got SIGTERM"),
                        _ = interrupt.recv() => info!("Got SIGINT"),
                    }
                    on_signal.begin();
                }
                (Err(error), _) | (_, Err(error)) => {
                    warn!(error = %ErrorChain(&error), "Failed to listen for signals; they will end the process at once");
                }
            }
        });
        shutdown
    }

    /// Begins the shutdown, unless it has begun.
    pub fn begin(&self) {
        self.begun.send_replace(true);
    }

    pub fn is_begun(&self) -> bool {
        *self.begun.borrow()
    }

    /// Returns once the shutdown has begun.
    pub async fn wait(&self) {
        let mut begun = self.begun.subscribe();
        // `self` holds the sender, so that the channel is open.
        let _closed = begun.wait_for(|begun| *begun).await;
    }
}

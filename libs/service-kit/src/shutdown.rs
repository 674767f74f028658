//! The wish to end, told to every task.

use tokio::{
    select,
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tracing::{info, warn};

/// Begun once, by a signal or by a task's end; never taken back.
#[derive(Clone, Debug)]
pub struct Shutdown {
    begun: watch::Sender<bool>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self {
            begun: watch::Sender::new(false),
        }
    }
}

impl Shutdown {
    /// A shutdown that SIGTERM or SIGINT begins.
    #[expect(clippy::disallowed_methods, reason = "its end is the process's end")]
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
                    warn!(%error, "Cannot listen for signals: they end the process at once");
                }
            }
        });
        shutdown
    }

    pub fn begin(&self) {
        self.begun.send_replace(true);
    }

    pub fn is_begun(&self) -> bool {
        *self.begun.borrow()
    }

    /// Returns when the shutdown begins; at once when it has.
    pub async fn wait(&self) {
        let mut begun = self.begun.subscribe();
        // The sender lives in `self`, so the channel cannot be closed here.
        let _closed = begun.wait_for(|begun| *begun).await;
    }
}

//! The only reader of the runtime's container events.
//!
//! Owns the event stream, its retries, and the list of containers that is read beside each new stream.
//!
//! With some runtimes a second reader takes events away from the kubelet, which needs them if its evented PLEG is on
//! (containerd issue 7318, fixed in 2.0; CRI-O issue 6466). The events of those runtimes are not read.

use std::{convert::Infallible, time::Duration};

use cri::{Cri, CriError};
use model::{error_chain::ErrorChain, presence::Runtime};
use service_kit::{Shutdown, backoff::Backoff};
use tokio::{
    sync::watch::{self, error::RecvError},
    time::sleep,
};
use tracing::{debug, info, warn};

use super::observations::Updates;

/// The bounds of the pause before the stream is opened again.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Reads events and sends what they observe.
pub(crate) struct EventWatcher {
    pub(crate) cri: Cri,
    pub(crate) runtime: watch::Receiver<Option<Runtime>>,
    pub(crate) updates: Updates,
}

// === impl EventWatcher ===

impl EventWatcher {
    pub(crate) async fn watch_events(mut self, shutdown: Shutdown) {
        tokio::select! {
            () = shutdown.wait() => {}
            _ = self.watch_streams() => {}
        }
    }

    /// # Errors
    /// The health check has ended, because the process is ending.
    async fn watch_streams(&mut self) -> Result<Infallible, RecvError> {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            self.wait_for_runtime().await?;
            match self.watch_stream(&mut backoff).await {
                Ok(()) => debug!("Event stream ended; opening it again"),
                Err(error) if error.is_unimplemented() => {
                    info!("Runtime has no event stream; launch levels wait for pod status");
                    self.runtime.changed().await?;
                }
                Err(error) => {
                    debug!(error = %ErrorChain(&error), "Failed to read events; retrying");
                }
            }
            sleep(backoff.next_delay()).await;
        }
    }

    /// Waits until a runtime answers that sends its events to every reader.
    async fn wait_for_runtime(&mut self) -> Result<(), RecvError> {
        loop {
            let answering = self.runtime.borrow_and_update().clone();
            match answering {
                Some(runtime) if sends_to_every_reader(&runtime) => return Ok(()),
                Some(Runtime { name, version }) => info!(
                    runtime = name,
                    version,
                    "Runtime sends events to one reader only, the kubelet; launch levels wait for pod status"
                ),
                None => {}
            }
            self.runtime.changed().await?;
        }
    }

    /// Reads one stream until it ends, as it does when the runtime stops, or until the subscriber is behind.
    async fn watch_stream(&self, backoff: &mut Backoff) -> Result<(), CriError> {
        // At the same time: the runtime answers the request for the stream only with its first event.
        let list = async {
            let observations = self.cri.list_containers().await?;
            self.updates.send_list(observations).await;
            Ok::<(), CriError>(())
        };
        let (events, listed) = tokio::join!(self.cri.watch_events(), list);
        listed?;
        let mut events = events?;
        backoff.reset();
        while let Some(observation) = events.next().await? {
            if !self.updates.send_change(observation) {
                // Each stream begins with a list.
                warn!("Subscriber missed container events; opening the stream again");
                return Ok(());
            }
        }
        Ok(())
    }
}

fn sends_to_every_reader(runtime: &Runtime) -> bool {
    let mut version = runtime.version.trim_start_matches('v').split('.');
    let major = version.next().and_then(|major| major.parse().ok());
    runtime.name == "containerd" && major.is_some_and(|major: u32| major >= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_events_only_from_runtimes_that_send_them_to_every_reader() {
        let is_read = |name: &str, version: &str| {
            let (name, version) = (name.to_owned(), version.to_owned());
            sends_to_every_reader(&Runtime { name, version })
        };
        for version in ["2.0.0", "v2.4.1", "2.1.4+unknown", "v10.0.0-rc.1"] {
            assert!(is_read("containerd", version), "{version}");
        }
        for version in ["1.7.28", "v1.6.20~ds1", "", "v", "unknown"] {
            assert!(!is_read("containerd", version), "{version}");
        }
        assert!(!is_read("cri-o", "2.0.0"));
    }
}

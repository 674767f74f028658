//! Telling the barrier-manager which containers have started, as soon as the runtime knows.
//!
//! Owns the runtime's event stream. What is told is a hint: nothing waits for it, and what is lost is in pod status a
//! little later. After the stream broke, everything that runs behind a barrier is told once.
//!
//! Of some runtimes a second reader takes events away from the kubelet, which needs them where its evented PLEG is on
//! (containerd issue 7318, mended with 2.0; CRI-O issue 6466). Those are not asked.

use std::{convert::Infallible, time::Duration};

use model::{error_chain::ErrorChain, launch::Started, presence::Runtime};
use service_kit::{Shutdown, backoff::Backoff};
use tokio::{
    sync::watch::{self, error::RecvError},
    time::sleep,
};
use tracing::{debug, info};

use crate::{
    cri::{CriError, next_event, start_of},
    metrics::Metrics,
    outside::Node,
};

/// The bounds of the pause before the stream is opened again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Tells starts.
pub(crate) struct StartTeller {
    node: Node,
    /// The runtime that answers now.
    runtime: watch::Receiver<Option<Runtime>>,
    metrics: Metrics,
}

// === impl StartTeller ===

impl StartTeller {
    pub(crate) fn new(
        node: Node,
        runtime: watch::Receiver<Option<Runtime>>,
        metrics: Metrics,
    ) -> Self {
        Self {
            node,
            runtime,
            metrics,
        }
    }

    /// Tells them until the shutdown.
    pub(crate) async fn publish_starts(mut self, shutdown: Shutdown) {
        tokio::select! {
            () = shutdown.wait() => {}
            _ = self.follow_for_ever() => {}
        }
    }

    /// # Errors
    /// Nobody looks any more which runtime answers: the process is ending.
    async fn follow_for_ever(&mut self) -> Result<Infallible, RecvError> {
        let mut backoff = Backoff::new(AGAIN_AFTER, LONGEST_PAUSE);
        loop {
            self.wait_for_events().await?;
            match self.follow(&mut backoff).await {
                Ok(()) => debug!("The runtime's events have ended, asking for them again"),
                Err(error) if error.is_unimplemented() => {
                    info!("The runtime tells no events: launch levels wait for pod status");
                    self.runtime.changed().await?;
                }
                Err(error) => {
                    debug!(error = %ErrorChain(&error), "The runtime's events are not to be had");
                }
            }
            sleep(backoff.next_delay()).await;
        }
    }

    /// Waits until a runtime answers whose events are for every reader.
    async fn wait_for_events(&mut self) -> Result<(), RecvError> {
        loop {
            let answering = self.runtime.borrow_and_update().clone();
            match answering {
                Some(runtime) if tells_every_reader(&runtime) => return Ok(()),
                Some(Runtime { name, version }) => info!(
                    runtime = name,
                    version,
                    "The runtime's events are the kubelet's alone: launch levels wait for pod status"
                ),
                None => {}
            }
            self.runtime.changed().await?;
        }
    }

    /// Until the stream ends, as it does with the runtime.
    async fn follow(&self, backoff: &mut Backoff) -> Result<(), CriError> {
        // The runtime answers the first request with its first event, however long that takes.
        let (events, told) = tokio::join!(self.node.cri.watch_events(), self.tell_running());
        told?;
        let mut events = events?;
        backoff.reset();
        while let Some(event) = next_event(&mut events).await? {
            if let Some(started) = start_of(event) {
                self.tell(&started).await;
            }
        }
        Ok(())
    }

    async fn tell_running(&self) -> Result<(), CriError> {
        for started in self.node.cri.list_started().await? {
            self.tell(&started).await;
        }
        Ok(())
    }

    async fn tell(&self, started: &Started) {
        let told = self
            .node
            .bus
            .publish_started(&self.node.name, started)
            .await;
        let result = if told.is_ok() { "told" } else { "lost" };
        self.metrics.count_start(result);
        debug!(pod = %started.pod, container = %started.container, result, "Container started");
    }
}

fn tells_every_reader(runtime: &Runtime) -> bool {
    let version = runtime.version.trim_start_matches('v');
    let major = version
        .split('.')
        .next()
        .and_then(|major| major.parse().ok());
    runtime.name == "containerd" && major.is_some_and(|major: u32| major >= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runtimes_with_events_for_all_are_asked() {
        let asked = |name: &str, version: &str| {
            let (name, version) = (name.to_owned(), version.to_owned());
            tells_every_reader(&Runtime { name, version })
        };
        for version in ["2.0.0", "v2.4.1", "2.1.4+unknown", "v10.0.0-rc.1"] {
            assert!(asked("containerd", version), "{version}");
        }
        for version in ["1.7.28", "v1.6.20~ds1", "", "v", "unknown"] {
            assert!(!asked("containerd", version), "{version}");
        }
        assert!(!asked("cri-o", "2.0.0"));
    }
}

//! Telling the barrier-manager which containers have started, as soon as the runtime knows.
//!
//! Owns the runtime's event stream. What is told is a hint: nothing waits for it, and what is lost is in pod status a
//! little later. After the stream broke, everything that runs behind a barrier is told once.

use std::time::Duration;

use bus::Bus;
use model::{ids::NodeName, launch::Started};
use service_kit::{ErrorChain, Shutdown, backoff::Backoff};
use tokio::time::sleep;
use tracing::{debug, info};

use crate::{
    cri::{Cri, CriError, next_event, start_of},
    metrics::Metrics,
};

/// The bounds of the pause before the stream is opened again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Tells starts.
pub(crate) struct StartTeller {
    cri: Cri,
    bus: Bus,
    node: NodeName,
    metrics: Metrics,
}

// === impl StartTeller ===

impl StartTeller {
    pub(crate) fn new(cri: Cri, bus: Bus, node: NodeName, metrics: Metrics) -> Self {
        Self {
            cri,
            bus,
            node,
            metrics,
        }
    }

    /// Tells them until the shutdown.
    pub(crate) async fn publish_starts(self, shutdown: Shutdown) {
        tokio::select! {
            () = shutdown.wait() => {}
            () = self.follow_for_ever() => {}
        }
    }

    async fn follow_for_ever(&self) {
        let mut backoff = Backoff::new(AGAIN_AFTER, LONGEST_PAUSE);
        loop {
            match self.follow(&mut backoff).await {
                Ok(()) => debug!("The runtime's events have ended, asking for them again"),
                Err(error) if error.is_unimplemented() => {
                    info!("The runtime tells no events: launch levels wait for pod status");
                    return std::future::pending().await;
                }
                Err(error) => {
                    debug!(error = %ErrorChain(&error), "The runtime's events are not to be had");
                }
            }
            sleep(backoff.next_delay()).await;
        }
    }

    /// Until the stream ends, as it does with the runtime.
    async fn follow(&self, backoff: &mut Backoff) -> Result<(), CriError> {
        // The runtime answers the first request with its first event, however long that takes.
        let (events, told) = tokio::join!(self.cri.watch_events(), self.tell_running());
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
        for started in self.cri.list_started().await? {
            self.tell(&started).await;
        }
        Ok(())
    }

    async fn tell(&self, started: &Started) {
        let told = self.bus.publish_started(&self.node, started).await;
        let result = if told.is_ok() { "told" } else { "lost" };
        self.metrics.count_start(result);
        debug!(pod = %started.pod, container = %started.container, result, "Container started");
    }
}

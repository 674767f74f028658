//! Presence messages on the bus.
//!
//! Owns their period and content. They may be lost; only warnings depend on them.

use std::time::Duration;

use bus::Bus;
use model::{
    error_chain::ErrorChain,
    ids::{BootId, NodeName},
    presence::{Presence, Runtime},
};
use service_kit::{Shutdown, backoff::Backoff};
use tokio::{select, sync::watch, time::sleep};
use tracing::warn;

/// Every 10 s on average; the jitter spreads the nodes of a cluster.
const MIN_PERIOD: Duration = Duration::from_secs(8);
const JITTER: Duration = Duration::from_secs(4);

const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";

pub(crate) struct PresencePublisher {
    pub(crate) bus: Bus,
    pub(crate) node: NodeName,
    pub(crate) boot_id: BootId,
    pub(crate) runtime: watch::Receiver<Option<Runtime>>,
    pub(crate) orders_held: watch::Receiver<u32>,
}

/// Reads the kernel's id of this boot.
pub(crate) async fn load_boot_id() -> std::io::Result<BootId> {
    let text = tokio::fs::read_to_string(BOOT_ID_FILE).await?;
    Ok(BootId::new(text.trim()))
}

// === impl PresencePublisher ===

impl PresencePublisher {
    /// Publishes until the shutdown; immediately when the runtime appears or disappears.
    pub(crate) async fn publish_presence(mut self, shutdown: Shutdown) {
        let mut jitter = Backoff::new(JITTER, JITTER);
        loop {
            let presence = Presence {
                node: self.node.clone(),
                boot_id: self.boot_id.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                runtime: self.runtime.borrow_and_update().clone(),
                orders_held: *self.orders_held.borrow(),
            };
            // Messages queued while the bus is disconnected would arrive late, and all at once.
            if self.bus.is_connected()
                && let Err(error) = self.bus.publish_presence(&presence).await
            {
                warn!(error = %ErrorChain(&error), "Failed to publish presence");
            }
            select! {
                () = shutdown.wait() => return,
                () = sleep(MIN_PERIOD + jitter.next_delay()) => {}
                Ok(()) = self.runtime.changed() => {}
            }
        }
    }
}

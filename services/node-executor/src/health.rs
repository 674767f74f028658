//! Whether the runtime and the bus are there.
//!
//! Owns the questions to both and the readiness that follows. A runtime that is away, or was never there,
//! is waited for: the process stays up and says where it looked.

use std::time::Duration;

use bus::Bus;
use model::{error_chain::ErrorChain, presence::Runtime};
use service_kit::{Readiness, Shutdown, backoff::Backoff};
use tokio::{select, sync::watch, time::sleep};
use tracing::{info, warn};

use crate::cri::{Cri, CriError};

const RUNTIME_PERIOD: Duration = Duration::from_secs(10);
const BUS_PERIOD: Duration = Duration::from_secs(1);

/// Asks the runtime for its version again and again until the shutdown.
pub(crate) async fn watch_runtime(
    cri: Cri,
    runtime: watch::Sender<Option<Runtime>>,
    readiness: Readiness,
    shutdown: Shutdown,
) {
    let mut backoff = Backoff::new(Duration::from_millis(500), RUNTIME_PERIOD);
    let mut last_trouble = None;
    loop {
        let pause = match cri.version().await {
            Ok(found) => {
                backoff.reset();
                last_trouble = None;
                readiness.set("runtime", true);
                runtime.send_if_modified(|known| {
                    let is_new = known.as_ref() != Some(&found);
                    if is_new {
                        info!(
                            runtime = found.name,
                            version = found.version,
                            "Runtime answers"
                        );
                        *known = Some(found);
                    }
                    is_new
                });
                RUNTIME_PERIOD
            }
            Err(error) => {
                readiness.set("runtime", false);
                runtime.send_if_modified(|known| known.take().is_some());
                let trouble = describe(&error);
                if last_trouble.as_ref() != Some(&trouble) {
                    warn!(error = trouble, "Runtime does not answer, trying again");
                    last_trouble = Some(trouble);
                }
                backoff.next_delay()
            }
        };
        select! {
            () = shutdown.wait() => return,
            () = sleep(pause) => {}
        }
    }
}

fn describe(error: &CriError) -> String {
    let advice = if error.is_unimplemented() {
        "; the socket is no CRI v1 endpoint: is the runtime's CRI plugin disabled, or --cri-socket wrong?"
    } else {
        ""
    };
    format!("{}{advice}", ErrorChain(error))
}

/// Looks at the connection to the bus every second until the shutdown.
pub(crate) async fn watch_bus(bus: Bus, readiness: Readiness, shutdown: Shutdown) {
    loop {
        readiness.set("bus", bus.is_connected());
        select! {
            () = shutdown.wait() => return,
            () = sleep(BUS_PERIOD) => {}
        }
    }
}

//! Health checks of the runtime and the bus.
//!
//! Owns their periods and the readiness that follows. The process keeps running without a runtime and logs the paths
//! that it tried.

use std::time::Duration;

use bus::Bus;
use cri::{Cri, CriError};
use model::{error_chain::ErrorChain, presence::Runtime};
use service_kit::{Readiness, Shutdown, backoff::Backoff};
use tokio::{select, sync::watch, time::sleep};
use tracing::{info, warn};

const RUNTIME_PERIOD: Duration = Duration::from_secs(10);
const BUS_PERIOD: Duration = Duration::from_secs(1);

/// Asks the runtime for its version periodically until the shutdown.
pub(crate) async fn watch_runtime(
    cri: Cri,
    runtime: watch::Sender<Option<Runtime>>,
    readiness: Readiness,
    shutdown: Shutdown,
) {
    let mut backoff = Backoff::new(Duration::from_millis(500), RUNTIME_PERIOD);
    let mut last_problem = None;
    loop {
        let pause = match cri.version().await {
            Ok(found) => {
                backoff.reset();
                last_problem = None;
                readiness.set("runtime", true);
                let is_new = runtime.borrow().as_ref() != Some(&found);
                if is_new {
                    let (name, version) = (&found.name, &found.version);
                    info!(runtime = name, version, "Runtime connected");
                    runtime.send_replace(Some(found));
                }
                RUNTIME_PERIOD
            }
            Err(error) => {
                readiness.set("runtime", false);
                runtime.send_if_modified(|known| known.take().is_some());
                let problem = describe(&error);
                if last_problem.as_ref() != Some(&problem) {
                    warn!(error = problem, "Failed to reach the runtime; retrying");
                    last_problem = Some(problem);
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
        "; the socket does not serve CRI v1: check that the runtime's CRI plugin is enabled and that --cri-socket is right"
    } else {
        ""
    };
    format!("{}{advice}", ErrorChain(error))
}

/// Checks the connection to the bus every second until the shutdown.
pub(crate) async fn watch_bus(bus: Bus, readiness: Readiness, shutdown: Shutdown) {
    loop {
        readiness.set("bus", bus.is_connected());
        select! {
            () = shutdown.wait() => return,
            () = sleep(BUS_PERIOD) => {}
        }
    }
}

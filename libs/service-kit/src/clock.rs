//! The one place that reads the clocks; all other code gets the time as an argument.

use jiff::Timestamp;
use model::time::{Monotonic, Now};
use tokio::time::{Instant, sleep_until};

/// The present by the system's wall clock.
#[expect(clippy::disallowed_methods, reason = "this is the place")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Both clocks of a loop around a machine.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The origin of the machine's monotonic moments.
    origin: Instant,
}

// === impl Clock ===

impl Clock {
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// The present on both clocks.
    pub fn now(self) -> Now {
        Now {
            wall: now(),
            monotonic: Monotonic::new(self.origin.elapsed()),
        }
    }

    /// Returns at that moment; never for `None`.
    pub async fn wait(self, until: Option<Monotonic>) {
        match until.and_then(|until| self.origin.checked_add(until.since_origin())) {
            Some(instant) => sleep_until(instant).await,
            None => std::future::pending().await,
        }
    }
}

//! Waiting for a condition instead of for a time.
//!
//! Owns the patience of all tests. It fails loudly when a condition never comes.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// More than any condition of these tests takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Looks until the condition gives a value.
///
/// # Panics
/// It did not within half a minute.
pub async fn eventually<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(Instant::now() < until, "waited in vain: {what}");
        sleep(LOOK_EVERY).await;
    }
}

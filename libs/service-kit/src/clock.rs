//! The one place that reads the time of day; everything else is handed `now`.

use jiff::Timestamp;

/// The present moment by the system's clock.
#[expect(clippy::disallowed_methods, reason = "this is the place")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

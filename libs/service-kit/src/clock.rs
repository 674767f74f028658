//! The only place that reads the wall clock; all other code takes `now` as an argument.

use jiff::Timestamp;

/// The present time of the wall clock.
#[expect(
    clippy::disallowed_methods,
    reason = "the only place that reads the wall clock"
)]
pub fn now() -> Timestamp {
    Timestamp::now()
}

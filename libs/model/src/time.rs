//! Arithmetic with moments and durations that anybody may have written.

use std::time::Duration;

use jiff::Timestamp;

/// Time from `since` to `now`; zero when the clock went back.
pub fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    now.duration_since(since)
        .try_into()
        .unwrap_or(Duration::ZERO)
}

/// The moment that long after another; the last one there is, where that is further away than can be told.
pub fn after(moment: Timestamp, wait: Duration) -> Timestamp {
    moment.checked_add(wait).unwrap_or(Timestamp::MAX)
}

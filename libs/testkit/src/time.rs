//! Times on both clocks, in milliseconds since the start of a test.

use std::time::Duration;

use jiff::Timestamp;
use model::time::{Monotonic, Now};

/// Where the wall clock stands at the start of a test.
const START_SECONDS: u64 = 1_000_000;

/// Both clocks, so long after the start.
pub fn at(milliseconds: u64) -> Now {
    Now {
        wall: wall(milliseconds),
        monotonic: monotonic(milliseconds),
    }
}

/// The wall clock, so long after the start.
pub fn wall(milliseconds: u64) -> Timestamp {
    let start = Timestamp::UNIX_EPOCH + Duration::from_secs(START_SECONDS);
    start + Duration::from_millis(milliseconds)
}

/// The monotonic clock, so long after the start.
pub fn monotonic(milliseconds: u64) -> Monotonic {
    Monotonic::new(Duration::from_millis(milliseconds))
}

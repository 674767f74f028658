//! The two clocks, and arithmetic with times and durations that users may have written.
//!
//! Owns [`Now`]: the wall clock for what is stored or shown, the monotonic clock for every timer. Nothing here overflows:
//! results are limited to the range of their type.

use std::{
    ops::{Add, Sub},
    time::Duration,
};

use jiff::Timestamp;

/// The farthest wake-up for a wall-clock time: a clock that is set meanwhile is noticed within this time.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

/// The present on both clocks, read once per event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// May be set forward and back at any time.
    pub wall: Timestamp,
    pub monotonic: Monotonic,
}

/// A moment on the monotonic clock, as time since an arbitrary origin of this process.
///
/// Moments of two processes cannot be compared, and none is ever stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(Duration);

// === impl Now ===

impl Now {
    /// The monotonic moment at which the wall clock will show `at`, if nobody sets it.
    ///
    /// A past `at` gives the present; one more than a day ahead gives a day ahead.
    pub fn moment_of(self, at: Timestamp) -> Monotonic {
        self.monotonic + elapsed(self.wall, at).min(LONGEST_WAIT)
    }
}

// === impl Monotonic ===

impl Monotonic {
    /// `since_origin`: time since the origin that all moments of this process share.
    pub const fn new(since_origin: Duration) -> Self {
        Self(since_origin)
    }

    pub const fn since_origin(self) -> Duration {
        self.0
    }
}

impl Add<Duration> for Monotonic {
    type Output = Self;

    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait))
    }
}

/// Time from an earlier moment to this one; zero if `earlier` is later.
impl Sub for Monotonic {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Time from `since` to `now`; zero if the clock was set back.
pub fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    let elapsed = now.duration_since(since);
    elapsed.try_into().unwrap_or(Duration::ZERO)
}

/// `moment` plus `wait`, at most the latest representable time.
pub fn after(moment: Timestamp, wait: Duration) -> Timestamp {
    moment.checked_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_time_is_as_far_away_on_the_monotonic_clock() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let monotonic = Monotonic::new(Duration::from_secs(50));
        let now = Now {
            wall: at(1_000),
            monotonic,
        };
        assert_eq!(now.moment_of(at(1_007)), monotonic + Duration::from_secs(7));
        assert_eq!(now.moment_of(at(990)), monotonic);
        assert_eq!(now.moment_of(Timestamp::MAX), monotonic + LONGEST_WAIT);
    }

    #[test]
    fn no_moment_overflows() {
        let late = Monotonic::default() + Duration::MAX;
        assert_eq!(late + Duration::from_secs(1), late);
        assert_eq!(Monotonic::default() - late, Duration::ZERO);
        assert_eq!(after(Timestamp::UNIX_EPOCH, Duration::MAX), Timestamp::MAX);
    }
}

//! Pauses before something is done again, by a clock that may be set back.
//!
//! Owns the question whether one is over. Only for what may as well be done too early: a pause that was begun in what is
//! the future by now counts as over, for nobody can tell how long ago that was.

use std::time::Duration;

use jiff::Timestamp;

use crate::time::after;

/// From a moment on, for so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    since: Timestamp,
    length: Duration,
}

// === impl Pause ===

impl Pause {
    pub const fn new(since: Timestamp, length: Duration) -> Self {
        Self { since, length }
    }

    /// When it ends, unless the clock is set.
    pub fn ends_at(self) -> Timestamp {
        after(self.since, self.length)
    }

    pub fn is_over(self, now: Timestamp) -> bool {
        now < self.since || self.ends_at() <= now
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(milliseconds).unwrap()
    }

    #[test]
    fn a_pause_that_cannot_end_is_no_overflow() {
        let pause = Pause::new(at(0), Duration::MAX);
        assert_eq!(pause.ends_at(), Timestamp::MAX);
        assert!(!pause.is_over(at(1)));
    }

    proptest! {
        #[test]
        fn a_pause_lasts_its_length_and_no_longer_whatever_the_clock_does(
            since in 0_i64..1_000_000,
            length in 0_u32..100_000,
            set_to in 0_i64..1_000_000,
        ) {
            let pause = Pause::new(at(since), Duration::from_millis(length.into()));
            let length = i64::from(length);
            // By a clock that nobody sets: exactly.
            for passed in [0, length / 2, length - 1, length, length + 1] {
                prop_assert_eq!(pause.is_over(at(since + passed)), passed < 0 || passed >= length);
            }
            // Set to any time in between, the clock needs no more than the length to show that it is over.
            prop_assert!(pause.is_over(at(set_to)) || pause.is_over(at(set_to + length)));
            prop_assert!(pause.is_over(at(set_to)) == (set_to < since || set_to >= since + length));
        }
    }
}

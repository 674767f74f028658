//! The retry policy of the rules: pauses that double.
//!
//! Owns the arithmetic. Jitter belongs to the IO that carries a retry out.

use std::time::Duration;

/// Pauses from `first` to `longest`, doubled with each try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubling {
    pub first: Duration,
    pub longest: Duration,
}

/// Pauses after writes to the API server that failed for no reason of the object's.
pub const API_WRITE: Doubling = Doubling::new(Duration::from_secs(1), Duration::from_secs(30));

// === impl Doubling ===

impl Doubling {
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// The pause after `tries` earlier failures.
    pub fn pause(self, tries: u32) -> Duration {
        let factor = 1_u32.checked_shl(tries).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let policy = Doubling::new(Duration::from_secs(1), Duration::from_secs(30));
        let seconds = [0, 1, 4, 5, 31, 32, u32::MAX].map(|tries| policy.pause(tries).as_secs());
        assert_eq!(seconds, [1, 2, 16, 30, 30, 30, 30]);
    }
}

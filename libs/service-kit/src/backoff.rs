//! Pauses before retries: exponential, with full jitter.
//!
//! Jitter spreads the retries of thousands of nodes after a server's restart.

use std::time::Duration;

use model::retry::Doubling;

/// Random pauses between zero and an upper bound that doubles with each one.
#[derive(Clone, Debug)]
pub struct Backoff {
    bounds: Doubling,
    tries: u32,
}

// === impl Backoff ===

impl Backoff {
    /// `min` and `max`: the first and the largest upper bound.
    pub const fn new(min: Duration, max: Duration) -> Self {
        Self {
            bounds: Doubling::new(min, max),
            tries: 0,
        }
    }

    /// Returns the next pause and doubles the bound of the one after it.
    pub fn next_delay(&mut self) -> Duration {
        let bound = self.bounds.pause(self.tries);
        self.tries = self.tries.saturating_add(1);
        bound.mul_f64(rand::random::<f64>())
    }

    /// Starts again at the first bound, after a success.
    pub const fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_below_the_growing_bound_and_the_maximum() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        for bound in [100, 200, 400, 800, 1000, 1000] {
            assert!(backoff.next_delay() <= Duration::from_millis(bound));
        }
        backoff.reset();
        assert!(backoff.next_delay() <= Duration::from_millis(100));
    }
}

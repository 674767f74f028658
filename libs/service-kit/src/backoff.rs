//! How long to wait before trying again: exponential, with full jitter.
//!
//! Jitter keeps thousands of nodes from coming back in step after one server's restart.

use std::time::Duration;

/// Delays between `0` and a ceiling that doubles from `min` to `max`.
#[derive(Clone, Debug)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    ceiling: Duration,
}

impl Backoff {
    pub fn new(min: Duration, max: Duration) -> Self {
        Self {
            min,
            max,
            ceiling: min,
        }
    }

    /// The next delay; the ceiling doubles for the one after it.
    pub fn next_delay(&mut self) -> Duration {
        let ceiling = self.ceiling;
        self.ceiling = (ceiling * 2).min(self.max);
        ceiling.mul_f64(rand::random::<f64>())
    }

    /// Begins again at `min`, after a success.
    pub fn reset(&mut self) {
        self.ceiling = self.min;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_below_the_growing_ceiling_and_the_maximum() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        for ceiling in [100, 200, 400, 800, 1000, 1000] {
            assert!(backoff.next_delay() <= Duration::from_millis(ceiling));
        }
        backoff.reset();
        assert!(backoff.next_delay() <= Duration::from_millis(100));
    }
}

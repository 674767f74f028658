//! Limits that an operator sets.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Maximum number of orders with a hook or a stop running; the others wait. 0 counts as 1.
    pub max_concurrent_stops: usize,
    /// Maximum number of removals under way; the others wait. 0 counts as 1.
    pub max_concurrent_removals: usize,
    /// How long a finished and acknowledged stop is remembered after its end.
    pub retention: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_concurrent_stops: 4,
            max_concurrent_removals: 4,
            retention: Duration::from_secs(24 * 3600),
        }
    }
}

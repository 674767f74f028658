//! Percentiles of durations.

use std::time::Duration;

/// Durations, sorted.
pub(crate) struct Figures(Vec<Duration>);

impl Figures {
    pub(crate) fn of(durations: impl IntoIterator<Item = Duration>) -> Self {
        let mut sorted: Vec<_> = durations.into_iter().collect();
        sorted.sort();
        Self(sorted)
    }

    /// The smallest duration that so many of a hundred do not exceed; zero when there is none at all.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_measured() {
        let figures = Figures::of((1..=20).rev().map(Duration::from_millis));
        for (percent, milliseconds) in [(50, 10), (90, 18), (99, 20), (100, 20)] {
            assert_eq!(figures.percentile(percent).as_millis(), milliseconds);
        }
        assert_eq!(Figures::of([]).percentile(50), Duration::ZERO);
    }
}

//! How long things may take.
//!
//! Owns the times that several rules share.

use std::time::Duration;

/// A node that answers no order for this long before it ever accepted one ends the CRR (OpenKruise: 60 s).
pub(crate) const NODE_SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// A node that is silent for this long is named in the CRR's status.
pub(crate) const NODE_SILENCE_SHOWN: Duration = Duration::from_secs(5);

/// States that change sooner than this after the last status write wait for the next one: a recreate that is over within
/// this time costs one status write at its start and one at its end.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(3);

/// This many active requests double the pause between two progress writes.
const FEW_REQUESTS: u32 = 16;

/// How often progress is written while that many requests are active: a burst costs the API server no more per request
/// than a single request does.
pub(crate) fn progress_interval(active: usize) -> Duration {
    let active = u32::try_from(active).unwrap_or(u32::MAX);
    PROGRESS_INTERVAL.saturating_mul(1 + active / FEW_REQUESTS)
}

/// The grace where neither the CRR nor the pod names one (Kubernetes' default).
pub(crate) const DEFAULT_GRACE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_written_less_often_in_a_burst() {
        let seconds = [0, 1, 15, 16, 200].map(|active| progress_interval(active).as_secs());
        assert_eq!(seconds, [3, 3, 3, 6, 39]);
        assert!(progress_interval(usize::MAX) > Duration::from_secs(1 << 29));
    }
}

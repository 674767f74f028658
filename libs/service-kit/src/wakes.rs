//! One wake-up time per key, on the monotonic clock.
//!
//! Owns only the times. The caller decides what to do with the keys that are due; a wake-up that comes too early does
//! no harm.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::{Instant, sleep_until};

/// Wake-up times, at most one per key.
#[derive(Clone, Debug)]
pub struct WakeSet<K> {
    moments: BTreeMap<K, Instant>,
    /// The same, ordered by time.
    queue: BTreeSet<(Instant, K)>,
}

// === impl WakeSet ===

impl<K: Ord + Clone> WakeSet<K> {
    pub const fn new() -> Self {
        Self {
            moments: BTreeMap::new(),
            queue: BTreeSet::new(),
        }
    }

    /// Replaces the wake-up time of the key; `None` removes it.
    pub fn set(&mut self, key: &K, at: Option<Instant>) {
        let before = match at {
            Some(at) => self.moments.insert(key.clone(), at),
            None => self.moments.remove(key),
        };
        if let Some(before) = before {
            self.queue.remove(&(before, key.clone()));
        }
        if let Some(at) = at {
            self.queue.insert((at, key.clone()));
        }
    }

    /// Sets the wake-up time of the key, unless it has an earlier one.
    pub fn set_sooner(&mut self, key: &K, at: Instant) {
        if self.get(key).is_none_or(|known| at < known) {
            self.set(key, Some(at));
        }
    }

    pub fn get(&self, key: &K) -> Option<Instant> {
        self.moments.get(key).copied()
    }

    /// Removes and returns the keys that are due.
    pub fn take_due(&mut self, now: Instant) -> BTreeSet<K> {
        let mut due = BTreeSet::new();
        while let Some((at, key)) = self.queue.pop_first() {
            if at > now {
                self.queue.insert((at, key));
                break;
            }
            self.moments.remove(&key);
            due.insert(key);
        }
        due
    }

    /// The next wake-up time of all keys.
    pub fn next(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Waits until the next wake-up time as known now; without one, for ever.
    pub fn wait(&self) -> impl Future<Output = ()> + use<K> {
        let next = self.next();
        async move {
            match next {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        }
    }

    pub fn len(&self) -> usize {
        self.moments.len()
    }

    pub fn is_empty(&self) -> bool {
        self.moments.is_empty()
    }
}

impl<K: Ord + Clone> Default for WakeSet<K> {
    fn default() -> Self {
        Self::new()
    }
}

/// The monotonic moment of a wall-clock time; `wall` and `now` are the present on both clocks. A past time gives `now`,
/// one more than a day ahead gives a day ahead.
pub fn instant_of(at: Timestamp, wall: Timestamp, now: Instant) -> Instant {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let wait = Duration::try_from(at.duration_since(wall)).unwrap_or(Duration::ZERO);
    now + wait.min(DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test]
    async fn a_key_has_one_wake_up_time_however_often_it_is_set() {
        let start = Instant::now();
        let mut wakes = WakeSet::new();
        for at in (0..1_400).rev() {
            wakes.set(&"web", Some(start + seconds(at)));
        }
        wakes.set(&"web", Some(start + seconds(10)));
        wakes.set(&"db", Some(start + seconds(20)));
        assert_eq!((wakes.len(), wakes.queue.len()), (2, 2));
        assert_eq!(wakes.next(), Some(start + seconds(10)));
        assert_eq!(wakes.take_due(start + seconds(9)), [].into());
        assert_eq!(wakes.take_due(start + seconds(10)), ["web"].into());
        assert_eq!(wakes.take_due(start + seconds(10)), [].into());
        assert_eq!(wakes.next(), Some(start + seconds(20)));
    }

    #[tokio::test]
    async fn set_sooner_keeps_the_earlier_time() {
        let start = Instant::now();
        let mut wakes = WakeSet::new();
        for at in [20, 10, 30] {
            wakes.set_sooner(&"web", start + seconds(at));
        }
        assert_eq!(wakes.get(&"web"), Some(start + seconds(10)));
    }

    #[tokio::test]
    async fn a_removed_key_is_not_due() {
        let start = Instant::now();
        let mut wakes = WakeSet::new();
        wakes.set(&1, Some(start));
        wakes.set(&2, Some(start));
        wakes.set(&1, None);
        wakes.set(&3, None);
        assert_eq!(wakes.take_due(start), [2].into());
        assert!(wakes.is_empty() && wakes.queue.is_empty());
    }

    #[tokio::test]
    async fn a_wall_clock_time_is_as_far_away_on_the_monotonic_clock() {
        let now = Instant::now();
        let wall = Timestamp::from_second(1_000).unwrap();
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(instant_of(at(1_007), wall, now), now + seconds(7));
        assert_eq!(instant_of(at(990), wall, now), now);
        let last = instant_of(Timestamp::MAX, wall, now);
        assert_eq!(last, now + seconds(24 * 3600));
    }
}

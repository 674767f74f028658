//! One wake-up time per key, on the monotonic clock.
//!
//! Owns the times only: a machine decides what is done for a key that is due. Waking too early does no harm.

use std::collections::{BTreeMap, BTreeSet};

use crate::time::Monotonic;

/// Wake-up times, at most one for each key.
#[derive(Clone, Debug)]
pub struct WakeSet<K> {
    times: BTreeMap<K, Monotonic>,
    /// The same, by time.
    queue: BTreeSet<(Monotonic, K)>,
}

// === impl WakeSet ===

impl<K> Default for WakeSet<K> {
    fn default() -> Self {
        Self {
            times: BTreeMap::new(),
            queue: BTreeSet::new(),
        }
    }
}

impl<K: Ord + Clone> WakeSet<K> {
    /// Replaces the key's wake-up time; `None` removes it.
    pub fn set(&mut self, key: &K, at: Option<Monotonic>) {
        let before = match at {
            Some(at) => self.times.insert(key.clone(), at),
            None => self.times.remove(key),
        };
        if let Some(before) = before {
            self.queue.remove(&(before, key.clone()));
        }
        if let Some(at) = at {
            self.queue.insert((at, key.clone()));
        }
    }

    /// Sets the key's wake-up time unless it has an earlier one.
    pub fn set_sooner(&mut self, key: &K, at: Monotonic) {
        if self.get(key).is_none_or(|known| at < known) {
            self.set(key, Some(at));
        }
    }

    pub fn get(&self, key: &K) -> Option<Monotonic> {
        self.times.get(key).copied()
    }

    /// Removes and returns the keys that are due.
    pub fn take_due(&mut self, now: Monotonic) -> BTreeSet<K> {
        let mut due = BTreeSet::new();
        while let Some((at, key)) = self.queue.pop_first() {
            if at > now {
                self.queue.insert((at, key));
                break;
            }
            self.times.remove(&key);
            due.insert(key);
        }
        due
    }

    pub fn len(&self) -> usize {
        self.times.len()
    }

    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    pub fn next(&self) -> Option<Monotonic> {
        self.queue.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::new(Duration::from_secs(seconds))
    }

    #[test]
    fn a_key_has_one_time_however_often_it_is_set() {
        let mut wakes = WakeSet::default();
        for seconds in (0..1_400).rev() {
            wakes.set(&"web", Some(at(seconds)));
        }
        wakes.set(&"web", Some(at(10)));
        wakes.set(&"db", Some(at(20)));
        wakes.set(&"gone", Some(at(5)));
        wakes.set(&"gone", None);
        assert_eq!((wakes.len(), wakes.queue.len()), (2, 2));
        assert_eq!(wakes.next(), Some(at(10)));
        assert_eq!(wakes.take_due(at(9)), [].into());
        assert_eq!(wakes.take_due(at(10)), ["web"].into());
        assert_eq!(wakes.take_due(at(10)), [].into());
        assert_eq!(wakes.next(), Some(at(20)));
    }

    #[test]
    fn the_sooner_of_two_times_counts_where_that_is_asked_for() {
        let mut wakes = WakeSet::default();
        for seconds in [20, 10, 30] {
            wakes.set_sooner(&"web", at(seconds));
        }
        assert_eq!(wakes.get(&"web"), Some(at(10)));
    }
}

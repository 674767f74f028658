//! When to look at what again: one moment for each key.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;

/// Moments by key. A key has one at most; a newer one replaces it.
#[derive(Clone, Debug)]
pub struct WakeSet<K> {
    moments: BTreeMap<K, Timestamp>,
    queue: BTreeSet<(Timestamp, K)>,
}

impl<K> Default for WakeSet<K> {
    fn default() -> Self {
        Self {
            moments: BTreeMap::new(),
            queue: BTreeSet::new(),
        }
    }
}

// === impl WakeSet ===

impl<K: Ord + Clone> WakeSet<K> {
    /// Sets a key's moment, or takes it away.
    pub fn set(&mut self, key: &K, at: Option<Timestamp>) {
        if let Some(before) = self.moments.remove(key) {
            self.queue.remove(&(before, key.clone()));
        }
        if let Some(at) = at {
            self.moments.insert(key.clone(), at);
            self.queue.insert((at, key.clone()));
        }
    }

    /// Sets a key's moment, unless it has an earlier one.
    pub fn set_sooner(&mut self, key: &K, at: Timestamp) {
        if self.get(key).is_none_or(|known| at < known) {
            self.set(key, Some(at));
        }
    }

    pub fn get(&self, key: &K) -> Option<Timestamp> {
        self.moments.get(key).copied()
    }

    /// Takes out every key whose moment has come.
    pub fn take_due(&mut self, now: Timestamp) -> BTreeSet<K> {
        let mut due = BTreeSet::new();
        while self.queue.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, key)) = self.queue.pop_first() {
                self.moments.remove(&key);
                due.insert(key);
            }
        }
        due
    }

    /// How long until the next moment comes; at most `longest`, for the clock may be set.
    pub fn wait(&self, now: Timestamp, longest: Duration) -> Duration {
        let Some((next, _)) = self.queue.first() else {
            return longest;
        };
        let wait = Duration::try_from(next.duration_since(now));
        wait.unwrap_or(Duration::ZERO).min(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn a_key_has_one_moment() {
        let mut wakes = WakeSet::default();
        wakes.set(&"a", Some(at(10)));
        wakes.set(&"a", Some(at(20)));
        wakes.set_sooner(&"a", at(30));
        assert_eq!(wakes.get(&"a"), Some(at(20)));
        assert!(wakes.take_due(at(19)).is_empty());
        wakes.set_sooner(&"a", at(15));
        assert_eq!(wakes.take_due(at(20)), BTreeSet::from(["a"]));
        assert_eq!(wakes.get(&"a"), None);
        wakes.set(&"b", Some(at(1)));
        wakes.set(&"b", None);
        assert!(wakes.take_due(at(100)).is_empty());
    }

    #[test]
    fn the_next_moment_is_waited_for_and_one_that_has_passed_is_now() {
        let longest = Duration::from_secs(60);
        let mut wakes = WakeSet::default();
        assert_eq!(wakes.wait(at(0), longest), longest);
        wakes.set(&"b", Some(Timestamp::MAX));
        assert_eq!(wakes.wait(at(0), longest), longest);
        wakes.set(&"a", Some(at(5)));
        assert_eq!(wakes.wait(at(2), longest), Duration::from_secs(3));
        assert_eq!(wakes.wait(at(9), longest), Duration::ZERO);
    }
}

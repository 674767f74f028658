//! What every watch of the API server needs: which of two objects is newer, and what a new list no longer holds.
//!
//! Owns both rules. What is watched is not known here.

use std::collections::BTreeSet;

/// An object's `metadata.resourceVersion`. Versions of one resource grow (KEP-5504).
///
/// A version that is not a number compares as the newest: such an object is never ignored as outdated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u64);

/// The keys that a list under way has not shown yet: those left at its end are gone.
#[derive(Clone, Debug)]
pub struct Unlisted<K>(BTreeSet<K>);

// === impl Version ===

impl Version {
    pub fn parse(version: &str) -> Self {
        Self(version.parse().unwrap_or(u64::MAX))
    }
}

// === impl Unlisted ===

impl<K> Default for Unlisted<K> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<K: Ord> Unlisted<K> {
    /// A list begins while these keys are known.
    pub fn begin(&mut self, known: BTreeSet<K>) {
        self.0 = known;
    }

    /// The list, or a change during it, showed this key.
    pub fn saw(&mut self, key: &K) {
        self.0.remove(key);
    }

    /// The list is complete. Returns the keys that are gone.
    pub fn end(&mut self) -> BTreeSet<K> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers_and_others_are_newest() {
        assert!(Version::parse("9") < Version::parse("10"));
        assert!(Version::parse("10") < Version::parse(""));
    }

    #[test]
    fn keys_that_a_list_does_not_show_are_gone() {
        let mut unlisted = Unlisted::default();
        unlisted.begin(BTreeSet::from(["a", "b"]));
        unlisted.saw(&"a");
        unlisted.saw(&"c");
        assert_eq!(unlisted.end(), BTreeSet::from(["b"]));
        assert_eq!(unlisted.end(), BTreeSet::new());
    }
}

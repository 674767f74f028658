//! The CRRs that the leader knows, and the ways to find one.
//!
//! Owns the indexes: by pod, by uid, and which have not ended. A CRR's pod never changes, and its phase only with a newer
//! object, so that they change here alone.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    crr::Crr,
    ids::{CrrKey, CrrUid, OrderId, PodKey},
};

use crate::tracked::{Tracked, is_ended};

/// One leader's memory of all CRRs.
#[derive(Default)]
pub(crate) struct Crrs {
    tracked: BTreeMap<CrrKey, Tracked>,
    by_pod: BTreeMap<PodKey, BTreeSet<CrrKey>>,
    by_uid: BTreeMap<CrrUid, CrrKey>,
    unended: BTreeSet<CrrKey>,
}

// === impl Crrs ===

impl Crrs {
    /// Takes an object in, unless a newer one is known, and says whether its CRR ended by it.
    ///
    /// An earlier CRR of the same name has to be removed before.
    pub(crate) fn see(&mut self, crr: Crr, version: String) -> bool {
        let key = crr.key.clone();
        let has_ended = match self.tracked.get_mut(&key) {
            Some(tracked) => tracked.update(crr, version),
            None => {
                self.add(Tracked::new(crr, version));
                false
            }
        };
        let ended = self.get(&key).is_some_and(|tracked| is_ended(&tracked.crr));
        if ended {
            self.unended.remove(&key);
        } else {
            self.unended.insert(key);
        }
        has_ended
    }

    fn add(&mut self, tracked: Tracked) {
        let Crr { key, uid, pod, .. } = &tracked.crr;
        self.by_uid.insert(uid.clone(), key.clone());
        let of_pod = self.by_pod.entry(pod.clone()).or_default();
        of_pod.insert(key.clone());
        self.tracked.insert(key.clone(), tracked);
    }

    pub(crate) fn remove(&mut self, key: &CrrKey) -> Option<Tracked> {
        let tracked = self.tracked.remove(key)?;
        self.unended.remove(key);
        self.by_uid.remove(&tracked.crr.uid);
        let pod = &tracked.crr.pod;
        if let Some(of_pod) = self.by_pod.get_mut(pod) {
            of_pod.remove(key);
            if of_pod.is_empty() {
                self.by_pod.remove(pod);
            }
        }
        Some(tracked)
    }

    pub(crate) fn get(&self, key: &CrrKey) -> Option<&Tracked> {
        self.tracked.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &CrrKey) -> Option<&mut Tracked> {
        self.tracked.get_mut(key)
    }

    pub(crate) fn keys(&self) -> BTreeSet<CrrKey> {
        self.tracked.keys().cloned().collect()
    }

    /// The names of all CRRs of a pod.
    pub(crate) fn keys_of(&self, pod: &PodKey) -> BTreeSet<CrrKey> {
        self.by_pod.get(pod).cloned().unwrap_or_default()
    }

    /// All CRRs of a pod.
    pub(crate) fn of_pod(&self, pod: &PodKey) -> impl Iterator<Item = &Tracked> {
        let keys = self.by_pod.get(pod).into_iter().flatten();
        keys.filter_map(|key| self.get(key))
    }

    /// The CRR that an order is of.
    pub(crate) fn owner(&self, order: &OrderId) -> Option<&Tracked> {
        self.get(self.by_uid.get(&order.crr_uid()?)?)
    }

    /// Those that have not ended.
    pub(crate) fn unended(&self) -> impl ExactSizeIterator<Item = &CrrKey> {
        self.unended.iter()
    }
}

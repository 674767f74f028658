//! The CRRs that the leader knows, and the ways to find one.
//!
//! Owns the indexes: by pod, by uid, and which have not ended. A CRR's pod never changes, and its phase only with a newer
//! object, so the indexes change here alone.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    crr::Crr,
    ids::{CrrKey, CrrUid, PodKey},
    order_id::OrderId,
};

use crate::entry::CrrEntry;

/// All CRRs of one leader.
#[derive(Clone, Debug, Default)]
pub(crate) struct CrrIndex {
    entries: BTreeMap<CrrKey, CrrEntry>,
    by_pod: BTreeMap<PodKey, BTreeSet<CrrKey>>,
    by_uid: BTreeMap<CrrUid, CrrKey>,
    unended: BTreeSet<CrrKey>,
}

// === impl CrrIndex ===

impl CrrIndex {
    /// Records an object unless a newer one is known. Returns true if its CRR ended by it.
    ///
    /// An earlier CRR of the same name must have been removed before.
    pub(crate) fn upsert(&mut self, crr: Crr) -> bool {
        let key = crr.key.clone();
        let has_ended = match self.entries.get_mut(&key) {
            Some(entry) => entry.update(crr),
            None => {
                self.add(CrrEntry::new(crr));
                false
            }
        };
        let is_ended = self.get(&key).is_some_and(CrrEntry::is_ended);
        if is_ended {
            self.unended.remove(&key);
        } else {
            self.unended.insert(key);
        }
        has_ended
    }

    fn add(&mut self, entry: CrrEntry) {
        let Crr { key, uid, pod, .. } = &entry.crr;
        self.by_uid.insert(uid.clone(), key.clone());
        let of_pod = self.by_pod.entry(pod.clone()).or_default();
        of_pod.insert(key.clone());
        self.entries.insert(key.clone(), entry);
    }

    pub(crate) fn remove(&mut self, key: &CrrKey) -> Option<CrrEntry> {
        let entry = self.entries.remove(key)?;
        self.unended.remove(key);
        self.by_uid.remove(&entry.crr.uid);
        let pod = &entry.crr.pod;
        if let Some(of_pod) = self.by_pod.get_mut(pod) {
            of_pod.remove(key);
            if of_pod.is_empty() {
                self.by_pod.remove(pod);
            }
        }
        Some(entry)
    }

    pub(crate) fn get(&self, key: &CrrKey) -> Option<&CrrEntry> {
        self.entries.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &CrrKey) -> Option<&mut CrrEntry> {
        self.entries.get_mut(key)
    }

    pub(crate) fn keys(&self) -> BTreeSet<CrrKey> {
        self.entries.keys().cloned().collect()
    }

    /// The keys of all CRRs of a pod.
    pub(crate) fn keys_of(&self, pod: &PodKey) -> BTreeSet<CrrKey> {
        self.by_pod.get(pod).cloned().unwrap_or_default()
    }

    /// All CRRs of a pod.
    pub(crate) fn of_pod(&self, pod: &PodKey) -> impl Iterator<Item = &CrrEntry> {
        let keys = self.by_pod.get(pod).into_iter().flatten();
        keys.filter_map(|key| self.get(key))
    }

    /// The CRR for which an order is given.
    pub(crate) fn owner(&self, order: &OrderId) -> Option<&CrrEntry> {
        self.get(self.by_uid.get(order.crr_uid()?)?)
    }

    /// The CRRs that have not ended.
    pub(crate) fn unended(&self) -> impl ExactSizeIterator<Item = &CrrKey> {
        self.unended.iter()
    }
}

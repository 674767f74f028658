//! The ConfigMaps that are known, by the pod that each is named after.
//!
//! Owns which of two observations is newer, and what a list no longer holds. It does not know pods.

use std::collections::BTreeMap;

use model::{
    ids::PodKey,
    launch::BarrierMap,
    watch::{Unlisted, Version},
};

use crate::snapshot::MapView;

/// The known ConfigMaps.
#[derive(Clone, Debug, Default)]
pub(super) struct Maps {
    known: BTreeMap<PodKey, BarrierMap>,
    unlisted: Unlisted<PodKey>,
    /// False until the first list is complete: before, a missing ConfigMap means nothing.
    is_listed: bool,
}

// === impl Maps ===

impl Maps {
    pub(super) fn begin_list(&mut self) {
        self.unlisted.begin(self.known.keys().cloned().collect());
    }

    /// The list, or a change during it, shows the pod's ConfigMap.
    pub(super) fn saw(&mut self, pod: &PodKey) {
        self.unlisted.saw(pod);
    }

    pub(super) fn end_list(&mut self) {
        self.is_listed = true;
        for pod in self.unlisted.end() {
            self.known.remove(&pod);
        }
    }

    /// Stores the ConfigMap, unless a newer one is known: an answer to our own write may overtake the watch.
    pub(super) fn store(&mut self, pod: &PodKey, map: BarrierMap) {
        let version = Version::parse(&map.version);
        let known = self.known.get(pod);
        if known.is_none_or(|known| Version::parse(&known.version) <= version) {
            self.known.insert(pod.clone(), map);
        }
    }

    /// There is no ConfigMap of that pod.
    pub(super) fn remove(&mut self, pod: &PodKey) {
        self.known.remove(pod);
    }

    /// The ConfigMap of that uid was deleted.
    pub(super) fn remove_uid(&mut self, pod: &PodKey, uid: &str) {
        if self.known.get(pod).is_some_and(|known| known.uid == uid) {
            self.known.remove(pod);
        }
    }

    /// The pod is gone, and with it the interest in a ConfigMap whose deletion the watch would not show.
    pub(super) fn remove_unwatched(&mut self, pod: &PodKey) {
        if self.is_unwatched(pod) {
            self.known.remove(pod);
        }
    }

    /// True if the pod's ConfigMap lacks our label, so that the watch does not show it.
    pub(super) fn is_unwatched(&self, pod: &PodKey) -> bool {
        self.known.get(pod).is_some_and(|known| !known.is_labelled)
    }

    /// True if this very ConfigMap is known, and the watch does not show it.
    pub(super) fn is_known_unwatched(&self, pod: &PodKey, uid: &str) -> bool {
        let known = self.known.get(pod);
        known.is_some_and(|known| known.uid == uid && !known.is_labelled)
    }

    pub(super) fn view(&self, pod: &PodKey) -> MapView<'_> {
        match self.known.get(pod) {
            Some(map) => MapView::Present(map),
            None if self.is_listed => MapView::Absent,
            None => MapView::Unknown,
        }
    }
}

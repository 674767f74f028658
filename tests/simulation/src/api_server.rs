//! The API server: objects with uids, resourceVersions and finalizers, and the log that watches read.
//!
//! Owns storage and preconditions. Delays, lost answers and stale watches are in `world/`.

use std::{collections::BTreeMap, time::Duration};

use model::{
    crr::Crr,
    ids::{CrrKey, CrrUid, PodKey, PodUid},
    launch::{BarrierMap, LaunchPod},
};

/// An object as it was after one write.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    Crr(Box<Crr>),
    Pod(Box<LaunchPod>),
    /// A ConfigMap with the keys of the pod that it is named after.
    Map(PodKey, BarrierMap),
}

/// The name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    Crr(CrrKey),
    Pod(PodKey),
    Map(PodKey),
}

/// One write, as watches show it.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// Of a deletion: the last object.
    pub(crate) object: Object,
    pub(crate) is_deleted: bool,
    pub(crate) at: Duration,
}

/// Why a write was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Conflict,
    NotFound,
}

/// The preconditions of a write.
#[derive(Clone, Debug, Default)]
pub(crate) struct Precondition {
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
}

/// All objects, and everything that was ever written.
#[derive(Default)]
pub(crate) struct ApiServer {
    pub(crate) now: Duration,
    pub(crate) log: Vec<Change>,
    pub(crate) crrs: BTreeMap<CrrKey, Crr>,
    pub(crate) pods: BTreeMap<PodKey, LaunchPod>,
    pub(crate) maps: BTreeMap<PodKey, BarrierMap>,
    /// ConfigMaps with a foreign finalizer: a deletion leaves them there.
    pub(crate) kept_maps: Vec<PodKey>,
}

// === impl Object ===

impl Object {
    pub(crate) fn name(&self) -> Name {
        match self {
            Self::Crr(crr) => Name::Crr(crr.key.clone()),
            Self::Pod(pod) => Name::Pod(pod.pod.key.clone()),
            Self::Map(pod, _) => Name::Map(pod.clone()),
        }
    }
}

// === impl Precondition ===

impl Precondition {
    pub(crate) fn uid(uid: &str) -> Self {
        Self {
            uid: Some(uid.to_owned()),
            version: None,
        }
    }

    pub(crate) fn version(version: &str) -> Self {
        Self {
            uid: None,
            version: Some(version.to_owned()),
        }
    }

    fn check(&self, uid: &str, version: &str) -> Result<(), Refused> {
        let is = |wanted: &Option<String>, present: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == present)
        };
        if is(&self.uid, uid) && is(&self.version, version) {
            Ok(())
        } else {
            Err(Refused::Conflict)
        }
    }
}

// === impl ApiServer ===

impl ApiServer {
    fn next_version(&self) -> String {
        (self.log.len() + 1).to_string()
    }

    fn record(&mut self, object: Object, is_deleted: bool) {
        self.log.push(Change {
            object,
            is_deleted,
            at: self.now,
        });
    }

    /// Stores a new version; a deleted request without finalizers is removed.
    pub(crate) fn put_crr(&mut self, mut crr: Crr) -> Crr {
        crr.version = self.next_version();
        let is_deleted = crr.is_being_deleted && crr.finalizers.is_empty();
        if is_deleted {
            self.crrs.remove(&crr.key);
        } else {
            self.crrs.insert(crr.key.clone(), crr.clone());
        }
        self.record(Object::Crr(Box::new(crr.clone())), is_deleted);
        crr
    }

    pub(crate) fn change_crr(
        &mut self,
        key: &CrrKey,
        precondition: &Precondition,
        change: impl FnOnce(&mut Crr),
    ) -> Result<Crr, Refused> {
        let mut crr = self.crrs.get(key).cloned().ok_or(Refused::NotFound)?;
        precondition.check(crr.uid.as_str(), &crr.version)?;
        change(&mut crr);
        Ok(self.put_crr(crr))
    }

    pub(crate) fn delete_crr(
        &mut self,
        key: &CrrKey,
        precondition: &Precondition,
    ) -> Result<Crr, Refused> {
        self.change_crr(key, precondition, |crr| crr.is_being_deleted = true)
    }

    pub(crate) fn find_crr(&self, uid: &CrrUid) -> Option<&Crr> {
        self.crrs.values().find(|crr| crr.uid == *uid)
    }

    pub(crate) fn put_pod(&mut self, mut pod: LaunchPod) -> LaunchPod {
        pod.pod.version = self.next_version();
        self.pods.insert(pod.pod.key.clone(), pod.clone());
        self.record(Object::Pod(Box::new(pod.clone())), false);
        pod
    }

    pub(crate) fn change_pod(
        &mut self,
        key: &PodKey,
        precondition: &Precondition,
        change: impl FnOnce(&mut LaunchPod),
    ) -> Result<LaunchPod, Refused> {
        let mut pod = self.pods.get(key).cloned().ok_or(Refused::NotFound)?;
        precondition.check(pod.pod.uid.as_str(), &pod.pod.version)?;
        change(&mut pod);
        Ok(self.put_pod(pod))
    }

    pub(crate) fn remove_pod(&mut self, key: &PodKey, uid: &PodUid) {
        if self.pods.get(key).is_some_and(|pod| pod.pod.uid == *uid)
            && let Some(mut pod) = self.pods.remove(key)
        {
            pod.pod.version = self.next_version();
            self.record(Object::Pod(Box::new(pod)), true);
        }
    }

    pub(crate) fn put_map(&mut self, pod: &PodKey, mut map: BarrierMap) -> BarrierMap {
        map.version = self.next_version();
        let is_deleted = map.is_being_deleted && !self.kept_maps.contains(pod);
        if is_deleted {
            self.maps.remove(pod);
        } else {
            self.maps.insert(pod.clone(), map.clone());
        }
        self.record(Object::Map(pod.clone(), map.clone()), is_deleted);
        map
    }

    pub(crate) fn change_map(
        &mut self,
        pod: &PodKey,
        precondition: &Precondition,
        change: impl FnOnce(&mut BarrierMap),
    ) -> Result<BarrierMap, Refused> {
        let mut map = self.maps.get(pod).cloned().ok_or(Refused::NotFound)?;
        precondition.check(&map.uid, &map.version)?;
        change(&mut map);
        Ok(self.put_map(pod, map))
    }

    /// The objects as they were after so many writes: what a list at that point shows.
    pub(crate) fn state_after(&self, writes: usize) -> Vec<&Object> {
        let mut state = BTreeMap::new();
        for change in &self.log[..writes.min(self.log.len())] {
            if change.is_deleted {
                state.remove(&change.object.name());
            } else {
                state.insert(change.object.name(), &change.object);
            }
        }
        state.into_values().collect()
    }
}

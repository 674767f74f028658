//! Taking events in: what each changes in the leader's memory, and which pods it concerns.
//!
//! Owns the memory's updates. Nothing is decided here; a write that met another ConfigMap has it fetched.

use std::collections::BTreeSet;

use api_client::{ObjectKey, WatchEvent};
use bus::Delivery;
use k8s_api::convert::{barrier_map_from_object, launch_pod_from_object};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use model::{
    error_chain::ErrorChain,
    ids::{PodKey, PodUid},
    launch::{BARRIER_SUFFIX, BarrierMap, Started},
    watch::Version,
};
use service_kit::clock;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::{Driver, Written};
use crate::{cluster::WriteError, tracked::Tracked};

impl Driver {
    pub(super) fn on_pod(&mut self, event: WatchEvent<Pod>) -> BTreeSet<PodKey> {
        match event {
            WatchEvent::ListBegun => {
                self.unlisted_pods = self.tracked.keys().cloned().collect();
                BTreeSet::new()
            }
            WatchEvent::Seen(pod) => self.see_pod(&pod).into_iter().collect(),
            WatchEvent::Unreadable(key) => {
                self.unlisted_pods.remove(&key_of(&key, &key.name));
                BTreeSet::new()
            }
            WatchEvent::Gone(key) => {
                let gone = key_of(&key, &key.name);
                self.forget(&gone, &PodUid::new(key.uid));
                BTreeSet::from([gone])
            }
            WatchEvent::ListEnded => {
                let gone = std::mem::take(&mut self.unlisted_pods);
                for pod in &gone {
                    self.tracked.remove(pod);
                    self.forget_unwatched_map(pod);
                }
                gone
            }
        }
    }

    /// The pod of that uid is no more; another of its name may be there.
    fn forget(&mut self, pod: &PodKey, uid: &PodUid) {
        let known = self.tracked.get(pod);
        if known.is_some_and(|tracked| tracked.launch.pod.uid == *uid) {
            self.tracked.remove(pod);
            self.forget_unwatched_map(pod);
        }
    }

    /// Our watch does not show a ConfigMap without our label, nor its end.
    fn forget_unwatched_map(&mut self, pod: &PodKey) {
        if self.maps.get(pod).is_some_and(|map| !map.is_labelled) {
            self.maps.remove(pod);
        }
    }

    /// A pod as the API server shows it, unless something newer is known.
    fn see_pod(&mut self, object: &Pod) -> Option<PodKey> {
        let launch = match launch_pod_from_object(object) {
            Ok(launch) => launch,
            Err(error) => {
                let (ns, pod) = (object.namespace(), object.name_any());
                warn!(ns, pod, error = %ErrorChain(&error), "Pod's launch cannot be read");
                return None;
            }
        };
        let key = launch.pod.key.clone();
        self.unlisted_pods.remove(&key);
        match self.tracked.get_mut(&key) {
            Some(tracked) if tracked.launch.pod.uid == launch.pod.uid => {
                let version = |of: &Tracked| Version::parse(&of.launch.pod.version);
                if Version::parse(&launch.pod.version) < version(tracked) {
                    return None; // Overtaken by the answer to our own write.
                }
                tracked.launch = launch;
            }
            Some(_) | None => {
                self.forget_unwatched_map(&key);
                self.tracked.insert(key.clone(), Tracked::new(launch));
            }
        }
        Some(key)
    }

    pub(super) fn on_map(&mut self, event: WatchEvent<ConfigMap>) -> BTreeSet<PodKey> {
        match event {
            WatchEvent::ListBegun => {
                self.unlisted_maps = self.maps.keys().cloned().collect();
                BTreeSet::new()
            }
            WatchEvent::Seen(map) => {
                let pod = pod_of(&ObjectKey::of(&map));
                if let Some(pod) = &pod {
                    self.unlisted_maps.remove(pod);
                    self.see_map(pod, barrier_map_from_object(&map));
                }
                pod.into_iter().collect()
            }
            WatchEvent::Unreadable(key) => {
                if let Some(pod) = pod_of(&key) {
                    self.unlisted_maps.remove(&pod);
                }
                BTreeSet::new()
            }
            WatchEvent::Gone(key) => {
                let Some(pod) = pod_of(&key) else {
                    return BTreeSet::new();
                };
                if self
                    .maps
                    .get(&pod)
                    .is_some_and(|known| known.uid == key.uid)
                {
                    self.maps.remove(&pod);
                }
                BTreeSet::from([pod])
            }
            WatchEvent::ListEnded => {
                self.are_maps_listed = true;
                let gone = std::mem::take(&mut self.unlisted_maps);
                for pod in &gone {
                    self.maps.remove(pod);
                }
                // All that waited for the list.
                self.tracked.keys().cloned().collect()
            }
        }
    }

    fn see_map(&mut self, pod: &PodKey, map: BarrierMap) {
        let known = self.maps.get(pod);
        let is_older = known
            .is_some_and(|known| Version::parse(&map.version) < Version::parse(&known.version));
        if map.is_labelled
            && let Some(tracked) = self.tracked.get_mut(pod)
        {
            tracked.looked = None;
        }
        if !is_older {
            self.maps.insert(pod.clone(), map);
        }
    }

    pub(super) fn on_started(&mut self, delivery: Delivery<Started, ()>) -> BTreeSet<PodKey> {
        let Delivery { message, node, .. } = delivery;
        let pod = message.pod.clone();
        let Some(tracked) = self.tracked.get_mut(&pod) else {
            return BTreeSet::new();
        };
        if !tracked.hear(&node, message) {
            debug!(%pod, %node, "A start that the node has no word in, or of no container behind a barrier");
            return BTreeSet::new();
        }
        self.metrics.hints.inc();
        BTreeSet::from([pod])
    }

    pub(super) fn on_written(
        &mut self,
        pod: PodKey,
        uid: &PodUid,
        result: Result<Written, WriteError>,
    ) -> BTreeSet<PodKey> {
        let is_met = matches!(result, Err(WriteError::Conflict | WriteError::Gone));
        match result {
            Ok(written) => {
                self.metrics.count_write("ok");
                match written {
                    Written::Map(map) => self.see_map(&pod, barrier_map_from_object(&map)),
                    Written::NoMap => {
                        self.maps.remove(&pod);
                    }
                    Written::Pod(object) => {
                        self.see_pod(&object);
                    }
                    Written::NoPod => {
                        self.forget(&pod, uid);
                    }
                    Written::Busy => return self.look_again_later(pod, uid),
                }
            }
            Err(error @ (WriteError::Conflict | WriteError::Gone)) => {
                self.metrics.count_write(error.kind());
                debug!(%pod, error = %ErrorChain(&error), "Something else is there than was known");
            }
            Err(error @ WriteError::Failed(_)) => return self.on_failed(pod, uid, &error),
        }
        let Some(tracked) = self.tracked.get_mut(&pod) else {
            return BTreeSet::new();
        };
        if tracked.launch.pod.uid != *uid {
            return BTreeSet::from([pod]); // Another pod by now; its own writes are its own.
        }
        if is_met {
            tracked.surprises += 1;
            self.fetch_map(&pod);
            return BTreeSet::new();
        }
        tracked.is_writing = false;
        tracked.surprises = 0;
        tracked.backoff.reset();
        BTreeSet::from([pod])
    }

    pub(super) fn on_fetched(
        &mut self,
        pod: PodKey,
        uid: &PodUid,
        result: Result<Option<ConfigMap>, WriteError>,
    ) -> BTreeSet<PodKey> {
        match result {
            Ok(Some(map)) => self.see_fetched(&pod, barrier_map_from_object(&map)),
            Ok(None) => {
                self.maps.remove(&pod);
            }
            Err(error) => return self.on_failed(pod, uid, &error),
        }
        match self.tracked.get_mut(&pod) {
            // What is there was no surprise the first time; somebody works against us the second.
            Some(tracked) if tracked.surprises > 1 => return self.look_again_later(pod, uid),
            Some(tracked) if tracked.launch.pod.uid == *uid => tracked.is_writing = false,
            Some(_) | None => {}
        }
        BTreeSet::from([pod])
    }

    fn see_fetched(&mut self, pod: &PodKey, map: BarrierMap) {
        let known = self.maps.get(pod);
        let is_the_same = known.is_some_and(|known| known.uid == map.uid && !known.is_labelled);
        if !map.is_labelled
            && let Some(tracked) = self.tracked.get_mut(pod)
        {
            tracked.look(is_the_same, clock::now());
        }
        self.see_map(pod, map);
    }

    fn look_again_later(&mut self, pod: PodKey, uid: &PodUid) -> BTreeSet<PodKey> {
        if let Some(tracked) = self.tracked.get_mut(&pod)
            && tracked.launch.pod.uid == *uid
        {
            tracked.is_writing = false;
            let pause = tracked.backoff.next_delay();
            self.wakes.set(&pod, Some(Instant::now() + pause));
        }
        BTreeSet::new()
    }

    /// The API server is away, or does not take it: told to the pod's owner, and tried again later.
    fn on_failed(&mut self, pod: PodKey, uid: &PodUid, error: &WriteError) -> BTreeSet<PodKey> {
        self.metrics.count_write("failed");
        warn!(%pod, error = %ErrorChain(error), "Launch was not written, trying again");
        let now = clock::now();
        let Some(tracked) = self.tracked.get_mut(&pod) else {
            return BTreeSet::new();
        };
        if tracked.launch.pod.uid == *uid {
            tracked.is_writing = false;
            let pause = tracked.backoff.next_delay();
            self.wakes.set(&pod, Some(Instant::now() + pause));
            if let Some(why) = error.refusal() {
                let event = barrier_rules::refused(&tracked.launch, why);
                self.tell(&pod, vec![event], now);
            }
        }
        BTreeSet::new()
    }

    pub(super) fn on_tick(&mut self, now: Instant) -> BTreeSet<PodKey> {
        let mut due = self.wakes.take_due(now);
        // What our watch does not show is fetched, and planned with then.
        due.retain(|pod| {
            let is_unwatched = self.maps.get(pod).is_some_and(|map| !map.is_labelled);
            if let Some(tracked) = self.tracked.get_mut(pod)
                && is_unwatched
                && !tracked.is_writing
            {
                tracked.surprises = 0;
                self.fetch_map(pod);
                return false;
            }
            true
        });
        due
    }
}

fn key_of(object: &ObjectKey, name: &str) -> PodKey {
    PodKey {
        namespace: object.namespace.as_str().into(),
        name: name.into(),
    }
}

/// The pod that a ConfigMap is named after.
fn pod_of(map: &ObjectKey) -> Option<PodKey> {
    let pod = map.name.strip_suffix(BARRIER_SUFFIX)?;
    Some(key_of(map, pod))
}

//! The manager's view of the API server: two watches by label, and the writes of ConfigMaps, nudges and events.
//!
//! Owns every request. It retries nothing: the driver plans again instead.

use std::{collections::BTreeSet, sync::Arc};

pub(crate) use api_client::WriteError;
use api_client::{
    events::{self, Telling},
    watch_config,
};
use barrier_rules::LaunchEvent;
use futures::{Stream, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Pod};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    runtime::{WatchStreamExt, watcher},
};
use model::{
    ids::{PodKey, PodUid},
    labels,
    launch::{BARRIER_SUFFIX, Priority},
};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tracing::warn;

/// How many requests are under way at most: fifty pods at once are quick, and the API server is not flooded.
const AT_ONCE: usize = 32;

/// Who tells our events.
const COMPONENT: &str = "barrier-manager";

/// What an open level's key says; only its presence counts (document 002).
const OPEN: &str = "true";

#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    streaming_lists: bool,
    room: Arc<Semaphore>,
}

// === impl Cluster ===

impl Cluster {
    pub(crate) fn new(client: Client, streaming_lists: bool) -> Self {
        Self {
            client,
            streaming_lists,
            room: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    /// All pods with launch barriers, for ever; failures are logged and tried again with back-off.
    pub(crate) fn watch_pods(&self) -> impl Stream<Item = watcher::Event<Pod>> + Send + use<> {
        self.watch("pods")
    }

    /// All their ConfigMaps, likewise.
    pub(crate) fn watch_maps(
        &self,
    ) -> impl Stream<Item = watcher::Event<ConfigMap>> + Send + use<> {
        self.watch("ConfigMaps")
    }

    fn watch<K>(&self, what: &'static str) -> impl Stream<Item = watcher::Event<K>> + Send + use<K>
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + 'static,
        K: serde::de::DeserializeOwned,
    {
        let selector = format!("{}={}", labels::LAUNCH_BARRIER, labels::LAUNCH_BARRIER_TRUE);
        let config = watch_config(self.streaming_lists).labels(&selector);
        let events = watcher(Api::all(self.client.clone()), config).default_backoff();
        events.filter_map(move |event| {
            let event = event
                .inspect_err(|error| warn!(what, %error, "Watch failed, trying again"))
                .ok();
            std::future::ready(event)
        })
    }

    pub(crate) async fn fetch_map(&self, pod: &PodKey) -> Result<Option<ConfigMap>, WriteError> {
        let _room = self.room.acquire().await;
        Ok(self.maps(pod).get_opt(&map_name(pod)).await?)
    }

    /// Makes the pod's ConfigMap. It goes with the pod, which owns it.
    pub(crate) async fn create_map(
        &self,
        pod: &PodKey,
        uid: &PodUid,
        keys: &BTreeSet<Priority>,
    ) -> Result<ConfigMap, WriteError> {
        let _room = self.room.acquire().await;
        let map = serde_json::from_value(json!({
            "metadata": {
                "name": map_name(pod),
                "labels": { labels::LAUNCH_BARRIER: labels::LAUNCH_BARRIER_TRUE },
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Pod", "name": pod.name.as_str(), "uid": uid.as_str(),
                }],
            },
            "data": entries(keys),
        }));
        let map: ConfigMap = map.expect("a ConfigMap is written out right above");
        Ok(self.maps(pod).create(&PostParams::default(), &map).await?)
    }

    /// Opens levels in the ConfigMap of that uid.
    pub(crate) async fn add_keys(
        &self,
        pod: &PodKey,
        map_uid: &str,
        keys: &BTreeSet<Priority>,
    ) -> Result<ConfigMap, WriteError> {
        let _room = self.room.acquire().await;
        let patch = json!({
            "metadata": {
                "uid": map_uid,
                "labels": { labels::LAUNCH_BARRIER: labels::LAUNCH_BARRIER_TRUE },
            },
            "data": entries(keys),
        });
        self.patch_map(pod, &patch).await
    }

    pub(crate) async fn empty_map(
        &self,
        pod: &PodKey,
        map_uid: &str,
    ) -> Result<ConfigMap, WriteError> {
        let _room = self.room.acquire().await;
        let patch = json!({ "metadata": { "uid": map_uid }, "data": null });
        self.patch_map(pod, &patch).await
    }

    async fn patch_map(&self, pod: &PodKey, patch: &Value) -> Result<ConfigMap, WriteError> {
        let (name, parameters) = (map_name(pod), PatchParams::default());
        let maps = self.maps(pod);
        Ok(maps.patch(&name, &parameters, &Patch::Merge(patch)).await?)
    }

    pub(crate) async fn delete_map(&self, pod: &PodKey, map_uid: &str) -> Result<(), WriteError> {
        let _room = self.room.acquire().await;
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(map_uid.to_owned()),
                ..Preconditions::default()
            }),
            ..DeleteParams::default()
        };
        self.maps(pod).delete(&map_name(pod), &parameters).await?;
        Ok(())
    }

    /// Has the kubelet look at the pod now: any changed annotation wakes its worker (facts, measured).
    pub(crate) async fn nudge(
        &self,
        pod: &PodKey,
        uid: &PodUid,
        level: Priority,
        completes: bool,
    ) -> Result<Pod, WriteError> {
        let _room = self.room.acquire().await;
        let mut annotations = json!({ labels::LAUNCH_LEVEL: level.key() });
        if completes {
            annotations[labels::LAUNCH_COMPLETED] = json!(labels::LAUNCH_COMPLETED_TRUE);
        }
        let patch = json!({
            "metadata": { "uid": uid.as_str(), "annotations": annotations },
        });
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), pod.namespace.as_str());
        let parameters = PatchParams::default();
        Ok(pods
            .patch(pod.name.as_str(), &parameters, &Patch::Merge(&patch))
            .await?)
    }

    /// Tells a warning. One that is there already, told by an earlier leader, is left as it is.
    pub(crate) async fn tell(
        &self,
        pod: &PodKey,
        uid: &PodUid,
        event: &LaunchEvent,
        now: Timestamp,
    ) -> Result<(), WriteError> {
        let container = event.container.as_ref();
        let about = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            name: Some(pod.name.to_string()),
            namespace: Some(pod.namespace.to_string()),
            uid: Some(uid.to_string()),
            field_path: container.map(|name| format!("spec.containers{{{name}}}")),
            ..ObjectReference::default()
        };
        let telling = Telling {
            component: COMPONENT,
            source: COMPONENT,
            name: &event.name,
            about,
            is_warning: true,
            reason: event.reason,
            message: &event.message,
        };
        Ok(events::tell(&self.client, telling, now).await?)
    }

    fn maps(&self, pod: &PodKey) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), pod.namespace.as_str())
    }
}

fn map_name(pod: &PodKey) -> String {
    format!("{}{BARRIER_SUFFIX}", pod.name)
}

fn entries(keys: &BTreeSet<Priority>) -> Map<String, Value> {
    keys.iter().map(|key| (key.key(), json!(OPEN))).collect()
}

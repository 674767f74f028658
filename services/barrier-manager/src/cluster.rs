//! The manager's requests to the API server: two watches by label, and writes of ConfigMaps, nudges and events.
//!
//! Owns every request. It retries no write: the machine does.

use std::collections::BTreeSet;

pub(crate) use api_client::WriteError;
use api_client::{
    WatchEvent,
    events::{self, EventDraft},
    watch, watch_config,
};
use barrier_rules::LaunchEvent;
use futures::Stream;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    runtime::watcher,
};
use model::{
    ids::{PodKey, PodUid},
    labels,
    launch::{BARRIER_SUFFIX, Priority},
};
use serde_json::{Map, Value, json};

/// `reportingComponent` of our events.
const COMPONENT: &str = "barrier-manager";

/// Value of an open level's key; only the presence of the key counts (document 002).
const OPEN: &str = "true";

#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    streaming_lists: bool,
}

// === impl Cluster ===

impl Cluster {
    pub(crate) fn new(client: Client, streaming_lists: bool) -> Self {
        Self {
            client,
            streaming_lists,
        }
    }

    /// An endless watch of all pods with launch barriers.
    pub(crate) fn watch_pods(&self) -> impl Stream<Item = WatchEvent<Pod>> + Send + use<> {
        watch(Api::all(self.client.clone()), self.watch_config(), "pods")
    }

    /// An endless watch of the ConfigMaps of these pods.
    pub(crate) fn watch_maps(&self) -> impl Stream<Item = WatchEvent<ConfigMap>> + Send + use<> {
        let maps = Api::all(self.client.clone());
        watch(maps, self.watch_config(), "ConfigMaps")
    }

    fn watch_config(&self) -> watcher::Config {
        let selector = format!("{}={}", labels::LAUNCH_BARRIER, labels::LAUNCH_BARRIER_TRUE);
        watch_config(self.streaming_lists).labels(&selector)
    }

    pub(crate) async fn fetch_map(&self, pod: &PodKey) -> Result<Option<ConfigMap>, WriteError> {
        Ok(self.maps(pod).get_opt(&map_name(pod)).await?)
    }

    /// Creates the pod's ConfigMap. The pod owns it, so that both are deleted together.
    pub(crate) async fn create_map(
        &self,
        pod: &PodKey,
        uid: &PodUid,
        keys: &BTreeSet<Priority>,
    ) -> Result<ConfigMap, WriteError> {
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

    /// Adds the keys of levels to the ConfigMap of this uid.
    pub(crate) async fn add_keys(
        &self,
        pod: &PodKey,
        map_uid: &str,
        keys: &BTreeSet<Priority>,
    ) -> Result<ConfigMap, WriteError> {
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
        let patch = json!({ "metadata": { "uid": map_uid }, "data": null });
        self.patch_map(pod, &patch).await
    }

    async fn patch_map(&self, pod: &PodKey, patch: &Value) -> Result<ConfigMap, WriteError> {
        let (name, parameters) = (map_name(pod), PatchParams::default());
        let maps = self.maps(pod);
        Ok(maps.patch(&name, &parameters, &Patch::Merge(patch)).await?)
    }

    pub(crate) async fn delete_map(&self, pod: &PodKey, map_uid: &str) -> Result<(), WriteError> {
        let parameters = DeleteParams::default().preconditions(Preconditions {
            uid: Some(map_uid.to_owned()),
            ..Preconditions::default()
        });
        self.maps(pod).delete(&map_name(pod), &parameters).await?;
        Ok(())
    }

    /// Makes the kubelet sync the pod now: any changed annotation wakes its worker (facts, measured).
    pub(crate) async fn nudge(
        &self,
        pod: &PodKey,
        uid: &PodUid,
        level: Priority,
        completes: bool,
    ) -> Result<Pod, WriteError> {
        let mut annotations = json!({ labels::LAUNCH_LEVEL: level.key() });
        if completes {
            annotations[labels::LAUNCH_COMPLETED] = json!(labels::LAUNCH_COMPLETED_TRUE);
        }
        let patch = json!({ "metadata": { "uid": uid.as_str(), "annotations": annotations } });
        let pods = Api::namespaced(self.client.clone(), pod.namespace.as_str());
        let (name, parameters) = (pod.name.as_str(), PatchParams::default());
        Ok(pods.patch(name, &parameters, &Patch::Merge(&patch)).await?)
    }

    /// Publishes a warning. One that an earlier leader published stays as it is.
    pub(crate) async fn publish(
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
        let draft = EventDraft {
            component: COMPONENT,
            source: COMPONENT,
            name: &event.name,
            about,
            is_warning: true,
            reason: event.reason,
            message: &event.message,
        };
        events::publish_event(&self.client, draft, now).await
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

//! The scheduler's requests to the API server: watches, and writes of CRRs. Writes of pods are in `cluster/pods.rs`.
//!
//! Owns every request. It retries no write: the driver plans again instead.

mod pods;

use std::future::ready;

pub(crate) use api_client::WriteError;
use api_client::{ObjectKey, WatchEvent, watch};
use futures::{Stream, StreamExt};
use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    runtime::watcher,
};
use model::{
    crr::{Crr, CrrStatus},
    ids::{CrrKey, CrrUid, PodKey},
    labels,
};
use serde_json::{Value, json};

use crr_rules::PodView;

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

    /// An endless watch of all CRRs.
    pub(crate) fn watch_crrs(
        &self,
    ) -> impl Stream<Item = WatchEvent<ContainerRecreateRequest>> + Send + use<> {
        watch(Api::all(self.client.clone()), self.watch_config(), "CRRs")
    }

    /// An endless watch of one pod by name: one request, whatever the size of the namespace.
    pub(crate) fn watch_pod(&self, pod: &PodKey) -> impl Stream<Item = PodView> + Send + use<> {
        let pods = Api::namespaced(self.client.clone(), pod.namespace.as_str());
        let config = self
            .watch_config()
            .fields(&format!("metadata.name={}", pod.name));
        let pod = pod.clone();
        let mut is_listed = false;
        watch::<Pod>(pods, config, "pod of a CRR").filter_map(move |event| {
            ready(match event {
                WatchEvent::ListBegun => {
                    is_listed = false;
                    None
                }
                WatchEvent::Seen(object) => {
                    is_listed = true;
                    pods::view_of(&pod, &object)
                }
                WatchEvent::Unreadable(_) => {
                    is_listed = true;
                    None
                }
                WatchEvent::Gone(_) => Some(PodView::Gone),
                WatchEvent::ListEnded => (!is_listed).then_some(PodView::Gone),
            })
        })
    }

    fn watch_config(&self) -> watcher::Config {
        api_client::watch_config(self.streaming_lists)
    }

    /// Writes the whole status of the object of this version. Returns the object as written.
    pub(crate) async fn write_status(
        &self,
        crr: &CrrKey,
        version: &str,
        status: &CrrStatus,
    ) -> Result<ContainerRecreateRequest, WriteError> {
        let patch = json!({
            "metadata": { "resourceVersion": version },
            "status": k8s_api::convert::status_json(status),
        });
        let parameters = PatchParams::default();
        let api = self.crrs(crr);
        Ok(api
            .patch_status(crr.name.as_str(), &parameters, &Patch::Merge(&patch))
            .await?)
    }

    /// Adds our finalizer to the object of this version.
    pub(crate) async fn add_finalizer(
        &self,
        crr: &Crr,
        version: &str,
    ) -> Result<ContainerRecreateRequest, WriteError> {
        let ours = [labels::UNREADY_ACQUIRED];
        let finalizers: Vec<_> = crr
            .finalizers
            .iter()
            .map(String::as_str)
            .chain(ours)
            .collect();
        let patch = json!({
            "metadata": { "resourceVersion": version, "finalizers": finalizers },
        });
        self.patch(&crr.key, &patch).await
    }

    /// Removes the `active` label and our finalizer. A version is needed only for the finalizers: other writers change
    /// that list.
    pub(crate) async fn close(
        &self,
        crr: &Crr,
        version: &str,
    ) -> Result<ContainerRecreateRequest, WriteError> {
        let mut metadata = json!({
            "uid": crr.uid.as_str(),
            "labels": { labels::CRR_ACTIVE: null },
        });
        if crr.has_finalizer() {
            let mut others = crr.finalizers.clone();
            others.retain(|finalizer| finalizer != labels::UNREADY_ACQUIRED);
            metadata["finalizers"] = json!(others);
            metadata["resourceVersion"] = json!(version);
        }
        self.patch(&crr.key, &json!({ "metadata": metadata })).await
    }

    async fn patch(
        &self,
        crr: &CrrKey,
        patch: &Value,
    ) -> Result<ContainerRecreateRequest, WriteError> {
        let (name, parameters) = (crr.name.as_str(), PatchParams::default());
        Ok(self
            .crrs(crr)
            .patch(name, &parameters, &Patch::Merge(patch))
            .await?)
    }

    pub(crate) async fn delete(&self, crr: &CrrKey, uid: &CrrUid) -> Result<(), WriteError> {
        let preconditions = Preconditions {
            uid: Some(uid.to_string()),
            ..Preconditions::default()
        };
        let parameters = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        self.crrs(crr)
            .delete(crr.name.as_str(), &parameters)
            .await?;
        Ok(())
    }

    fn crrs(&self, crr: &CrrKey) -> Api<ContainerRecreateRequest> {
        Api::namespaced(self.client.clone(), crr.namespace.as_str())
    }
}

/// The key of a watched CRR.
pub(crate) fn crr_key(key: &ObjectKey) -> CrrKey {
    CrrKey {
        namespace: key.namespace.as_str().into(),
        name: key.name.as_str().into(),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::DeserializeGuard;

    use super::*;

    fn object(completed_at: &str) -> DeserializeGuard<ContainerRecreateRequest> {
        let object = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
            "metadata": { "namespace": "shop", "name": "a" },
            "spec": { "podName": "web", "containers": [] },
            "status": { "phase": "Completed", "completionTime": completed_at, "containerRecreateStates": [] },
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_request_with_a_time_beyond_ours_does_not_end_the_watch() {
        assert!(object("2026-01-01T00:00:00Z").0.is_ok());
        assert!(object("9999-12-31T23:59:59Z").0.is_err());
    }
}

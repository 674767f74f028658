//! The scheduler's requests to the API server: watches, and writes of CRRs. Writes of pods are in `cluster/pods.rs`.
//!
//! Owns every request. It retries no write: the driver plans again instead.

mod pods;

use std::future::ready;

pub(crate) use api_client::WriteError;
use api_client::{ObjectKey, WatchEvent, watch};
use crr_rules::{PodView, Write, WriteResult};
use futures::{Stream, StreamExt};
use jiff::Timestamp;
use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    runtime::watcher,
};
use model::{
    crr::{Crr, CrrStatus},
    error_chain::ErrorChain,
    ids::{CrrKey, PodKey},
    labels,
};
use serde_json::{Value, json};
use tracing::warn;

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

    /// Carries out a write that was decided on this CRR, and returns what was written.
    pub(crate) async fn write(
        &self,
        crr: &Crr,
        write: &Write,
        now: Timestamp,
    ) -> Result<WriteResult, WriteError> {
        let object = match write {
            Write::Status(status) => self.write_status(crr, status).await?,
            Write::AddFinalizer => self.add_finalizer(crr).await?,
            Write::Close => self.close(crr).await?,
            Write::Delete => {
                self.delete(crr).await?;
                return Ok(WriteResult::Deleted);
            }
            Write::Gate(gate) => {
                let uid = crr.pod_uid.as_ref().ok_or(WriteError::Gone)?;
                let view = self.write_gate(&crr.pod, uid, gate, now).await?;
                return Ok(WriteResult::Gate(view));
            }
        };
        Ok(WriteResult::Crr(crr_of(&object).map(Box::new)))
    }

    /// Writes the whole status of the object of this version.
    async fn write_status(
        &self,
        crr: &Crr,
        status: &CrrStatus,
    ) -> Result<ContainerRecreateRequest, WriteError> {
        let patch = json!({
            "metadata": { "resourceVersion": crr.version },
            "status": k8s_api::convert::status_json(status),
        });
        let (name, parameters) = (crr.key.name.as_str(), PatchParams::default());
        let api = self.crrs(&crr.key);
        Ok(api
            .patch_status(name, &parameters, &Patch::Merge(&patch))
            .await?)
    }

    /// Adds our finalizer to the object of this version.
    async fn add_finalizer(&self, crr: &Crr) -> Result<ContainerRecreateRequest, WriteError> {
        let mut finalizers = crr.finalizers.clone();
        finalizers.push(labels::UNREADY_ACQUIRED.to_owned());
        let patch = json!({
            "metadata": { "resourceVersion": crr.version, "finalizers": finalizers },
        });
        self.patch(&crr.key, &patch).await
    }

    /// Removes the `active` label and our finalizer. Only the finalizers need a version: other writers change that list.
    async fn close(&self, crr: &Crr) -> Result<ContainerRecreateRequest, WriteError> {
        let mut metadata = json!({
            "uid": crr.uid.as_str(),
            "labels": { labels::CRR_ACTIVE: null },
        });
        if crr.has_finalizer() {
            let mut others = crr.finalizers.clone();
            others.retain(|finalizer| finalizer != labels::UNREADY_ACQUIRED);
            metadata["finalizers"] = json!(others);
            metadata["resourceVersion"] = json!(crr.version);
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

    async fn delete(&self, crr: &Crr) -> Result<(), WriteError> {
        let preconditions = Preconditions {
            uid: Some(crr.uid.to_string()),
            ..Preconditions::default()
        };
        let parameters = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        let name = crr.key.name.as_str();
        self.crrs(&crr.key).delete(name, &parameters).await?;
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

/// The CRR of an object; `None` if it lacks what the API server always sets, which is logged.
pub(crate) fn crr_of(object: &ContainerRecreateRequest) -> Option<Crr> {
    k8s_api::convert::crr_from_object(object)
        .inspect_err(|error| {
            let (ns, crr) = (object.namespace(), object.name_any());
            warn!(ns, crr, error = %ErrorChain(error), "CRR cannot be read");
        })
        .ok()
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

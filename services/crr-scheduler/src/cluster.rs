//! The scheduler's view of the API server: the watches and the writes of CRRs; a pod's writes are in `cluster/pods.rs`.
//!
//! Owns every request. It retries nothing: the driver plans again instead.

mod pods;

use std::sync::Arc;

pub(crate) use api_client::WriteError;
use futures::{Stream, StreamExt};
use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions},
    runtime::{WatchStreamExt, watcher},
};
use model::{
    crr::{Crr, CrrStatus},
    ids::{CrrKey, CrrUid, PodKey},
    labels,
};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::warn;

use crr_rules::PodView;

/// How many writes are under way at most: in a burst they are not to keep the API server from our own lease.
const AT_ONCE: usize = 16;

/// What the watch of CRRs tells.
pub(crate) enum CrrNews {
    ListBegins,
    /// As it is now, listed or changed.
    Seen(Box<ContainerRecreateRequest>),
    /// Its types do not fit: what was known of it stays so, and nobody else's news wait for it.
    Unreadable(CrrKey),
    Gone(CrrKey),
    ListEnds,
}

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

    /// Waits until a write may begin.
    async fn room(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.room.acquire().await.ok()
    }

    /// All CRRs of the cluster, for ever; failures are logged and tried again with back-off.
    ///
    /// Objects are read one by one, after the watch: with one that cannot be read it would begin anew, for ever.
    pub(crate) fn watch_crrs(&self) -> impl Stream<Item = CrrNews> + Send + use<> {
        let resource = ApiResource::erase::<ContainerRecreateRequest>(&());
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let events = watcher(api, self.watch_config()).default_backoff();
        events.filter_map(async |event| match event {
            Ok(event) => news_of(event),
            Err(error) => {
                warn!(%error, "CRR watch failed, trying again");
                None
            }
        })
    }

    /// One pod by name, for ever: one watch request, whatever the size of the namespace.
    pub(crate) fn watch_pod(&self, pod: &PodKey) -> impl Stream<Item = PodView> + Send + use<> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), pod.namespace.as_str());
        let config = self
            .watch_config()
            .fields(&format!("metadata.name={}", pod.name));
        let events = watcher(api, config).default_backoff();
        let pod = pod.clone();
        let mut is_listed = false;
        events.filter_map(move |event| {
            let view = match event {
                Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                    is_listed = true;
                    pods::view_of(&pod, &object)
                }
                Ok(watcher::Event::Delete(_)) => Some(PodView::Gone),
                Ok(watcher::Event::Init) => {
                    is_listed = false;
                    None
                }
                Ok(watcher::Event::InitDone) => (!is_listed).then_some(PodView::Gone),
                Err(error) => {
                    warn!(%pod, %error, "Pod watch failed, trying again");
                    None
                }
            };
            async move { view }
        })
    }

    fn watch_config(&self) -> watcher::Config {
        api_client::watch_config(self.streaming_lists)
    }

    /// Writes the whole status of the object of that version and returns the object as written.
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
        let _room = self.room().await;
        Ok(api
            .patch_status(crr.name.as_str(), &parameters, &Patch::Merge(&patch))
            .await?)
    }

    /// Puts our finalizer on the object of that version, beside those that are there.
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

    /// Takes the `active` label and our finalizer off. Only the list of finalizers has other writers, so that
    /// without it no version is needed.
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
        let _room = self.room().await;
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
        let _room = self.room().await;
        self.crrs(crr)
            .delete(crr.name.as_str(), &parameters)
            .await?;
        Ok(())
    }

    fn crrs(&self, crr: &CrrKey) -> Api<ContainerRecreateRequest> {
        Api::namespaced(self.client.clone(), crr.namespace.as_str())
    }
}

/// `None` of an object without a name, which the API server does not send.
fn news_of(event: watcher::Event<DynamicObject>) -> Option<CrrNews> {
    Some(match event {
        watcher::Event::Init => CrrNews::ListBegins,
        watcher::Event::InitDone => CrrNews::ListEnds,
        watcher::Event::Delete(object) => CrrNews::Gone(key_of(&object)?),
        watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
            let key = key_of(&object)?;
            match object.try_parse() {
                Ok(object) => CrrNews::Seen(Box::new(object)),
                Err(error) => {
                    warn!(crr = %key, %error, "CRR cannot be read");
                    CrrNews::Unreadable(key)
                }
            }
        }
    })
}

fn key_of(object: &DynamicObject) -> Option<CrrKey> {
    Some(CrrKey {
        namespace: object.metadata.namespace.as_deref()?.into(),
        name: object.metadata.name.as_deref()?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(completed_at: &str) -> DynamicObject {
        let object = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
            "metadata": { "namespace": "shop", "name": "a" },
            "spec": { "podName": "web", "containers": [] },
            "status": { "phase": "Completed", "completionTime": completed_at, "containerRecreateStates": [] },
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn an_object_that_cannot_be_read_is_news_of_its_own() {
        let readable = watcher::Event::Apply(object("2026-01-01T00:00:00Z"));
        assert!(matches!(news_of(readable), Some(CrrNews::Seen(_))));
        // The last moment of Kubernetes is later than ours.
        let late = || object("9999-12-31T23:59:59Z");
        for event in [
            watcher::Event::Apply(late()),
            watcher::Event::InitApply(late()),
        ] {
            assert!(matches!(news_of(event), Some(CrrNews::Unreadable(_))));
        }
        let gone = watcher::Event::Delete(late());
        assert!(matches!(news_of(gone), Some(CrrNews::Gone(_))));
    }
}

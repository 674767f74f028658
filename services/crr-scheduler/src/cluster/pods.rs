//! The scheduler's watch of new pods, its writes of pods, and its events.

use std::future::ready;

use api_client::{
    WatchEvent,
    events::{self, EventDraft},
    watch,
};
use crr_rules::{About, CrrEvent, GateWrite, PodView};
use futures::{Stream, StreamExt};
use jiff::Timestamp;
use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::{
    api::core::v1::{ObjectReference, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use model::{
    crr::Crr,
    error_chain::ErrorChain,
    ids::{PodKey, PodUid},
    labels,
};
use serde_json::json;
use tracing::warn;

use super::{Cluster, WriteError};

/// `reportingComponent` of our events.
const COMPONENT: &str = "crr-scheduler";

/// `source.component` of events on pods: OpenKruise's node daemon, where its users look for them.
const SOURCE_ON_PODS: &str = "kruise-daemon-crr";

// === impl Cluster ===

impl Cluster {
    /// Every pod with our readiness gate, listed or changed.
    pub(crate) fn watch_gated_pods(&self) -> impl Stream<Item = model::pod::Pod> + Send + use<> {
        let selector = format!("{}=true", labels::READINESS_GATE);
        let config = self.watch_config().labels(&selector);
        let events = watch::<Pod>(Api::all(self.client.clone()), config, "gated pods");
        events.filter_map(|event| {
            ready(match event {
                WatchEvent::Seen(object) => read(&object),
                WatchEvent::ListBegun
                | WatchEvent::Unreadable(_)
                | WatchEvent::Gone(_)
                | WatchEvent::ListEnded => None,
            })
        })
    }

    /// Opens or shuts a pod's readiness gate. Returns the pod as written. Conditions merge by their type, so that only
    /// those of the readiness gate change; the version guards the entries of other writers.
    pub(crate) async fn write_gate(
        &self,
        pod: &PodKey,
        uid: &PodUid,
        gate: &GateWrite,
        now: Timestamp,
    ) -> Result<Option<PodView>, WriteError> {
        let status = if gate.is_open { "True" } else { "False" };
        let mut conditions = vec![json!({
            "type": labels::KRUISE_POD_READY,
            "status": status,
            "message": gate.message,
            "lastTransitionTime": Time(now),
        })];
        if gate.is_ready_too {
            conditions.push(json!({
                "type": "Ready",
                "status": "False",
                "reason": "ReadinessGatesNotReady",
                "message": format!("the status of pod readiness gate {:?} is not \"True\", but False", labels::KRUISE_POD_READY),
                "lastTransitionTime": Time(now),
            }));
        }
        let patch = json!({
            "metadata": { "uid": uid.as_str(), "resourceVersion": gate.pod_version },
            "status": { "conditions": conditions },
        });
        let parameters = PatchParams::default();
        let object = self
            .pods(pod)
            .patch_status(pod.name.as_str(), &parameters, &Patch::Strategic(&patch))
            .await?;
        Ok(view_of(pod, &object))
    }

    /// Makes the kubelet sync the pod now: any changed annotation wakes its worker (facts, measured).
    pub(crate) async fn nudge(
        &self,
        pod: &PodKey,
        uid: &PodUid,
        now: Timestamp,
    ) -> Result<(), WriteError> {
        let patch = json!({
            "metadata": {
                "uid": uid.as_str(),
                "annotations": { labels::NUDGE: now.to_string() },
            },
        });
        let parameters = PatchParams::default();
        self.pods(pod)
            .patch_metadata(pod.name.as_str(), &parameters, &Patch::Merge(&patch))
            .await?;
        Ok(())
    }

    /// Publishes an event. One that an earlier leader published stays as it is.
    pub(crate) async fn publish(
        &self,
        crr: &Crr,
        event: &CrrEvent,
        now: Timestamp,
    ) -> Result<(), WriteError> {
        let namespace = crr.key.namespace.to_string();
        let about = match &event.about {
            About::Crr => ObjectReference {
                api_version: Some(ContainerRecreateRequest::api_version(&()).into_owned()),
                kind: Some(ContainerRecreateRequest::kind(&()).into_owned()),
                name: Some(crr.key.name.to_string()),
                uid: Some(crr.uid.to_string()),
                ..ObjectReference::default()
            },
            About::Container(name) => part_of_pod(crr, format!("spec.containers{{{name}}}")),
            About::Sidecar(name) => part_of_pod(crr, format!("spec.initContainers{{{name}}}")),
        };
        let draft = EventDraft {
            component: COMPONENT,
            source: match &event.about {
                About::Crr => COMPONENT,
                About::Container(_) | About::Sidecar(_) => SOURCE_ON_PODS,
            },
            name: &event.name,
            about: ObjectReference {
                namespace: Some(namespace),
                ..about
            },
            is_warning: event.is_warning,
            reason: event.reason,
            message: &event.message,
        };
        events::publish_event(&self.client, draft, now).await
    }

    fn pods(&self, pod: &PodKey) -> Api<Pod> {
        Api::namespaced(self.client.clone(), pod.namespace.as_str())
    }
}

/// Reference to a container of the CRR's pod, in the form of the kubelet's events.
fn part_of_pod(crr: &Crr, field_path: String) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(crr.pod.name.to_string()),
        uid: crr.pod_uid.as_ref().map(ToString::to_string),
        field_path: Some(field_path),
        ..ObjectReference::default()
    }
}

fn read(object: &Pod) -> Option<model::pod::Pod> {
    k8s_api::convert::pod_from_object(object)
        .inspect_err(|error| {
            let (ns, pod) = (object.namespace(), object.name_any());
            warn!(ns, pod, error = %ErrorChain(error), "Pod cannot be read");
        })
        .ok()
}

pub(super) fn view_of(key: &PodKey, object: &Pod) -> Option<PodView> {
    match k8s_api::convert::pod_from_object(object) {
        Ok(pod) => Some(PodView::Present(Box::new(pod))),
        Err(error) => {
            warn!(pod = %key, error = %ErrorChain(&error), "Pod status cannot be read");
            None
        }
    }
}

//! What is read to explain a pod.

use std::collections::BTreeSet;

use futures::try_join;
use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod};
use kube::{Api, Resource, ResourceExt, api::ListParams};
use model::{labels, launch::BARRIER_SUFFIX};

use super::Cluster;
use crate::{
    failure::Failure,
    why::{Barriers, Seen},
};

// === impl Cluster ===

impl Cluster {
    /// A request, where there is one of that name.
    pub(crate) async fn find_request(
        &self,
        name: &str,
    ) -> Result<Option<ContainerRecreateRequest>, Failure> {
        let request = self.requests().get_opt(name).await;
        request.map_err(|error| Failure::new(format!("reading request {name}"), error))
    }

    /// A pod, where there is one of that name.
    pub(crate) async fn find_pod(&self, name: &str) -> Result<Option<Pod>, Failure> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let pod = pods.get_opt(name).await;
        pod.map_err(|error| Failure::new(format!("reading pod {name}"), error))
    }

    /// The requests of a pod, its events and theirs.
    pub(crate) async fn fetch_story(&self, pod: Pod) -> Result<Seen, Failure> {
        let uid = pod.uid().unwrap_or_default();
        let of_pod = format!("{}={uid}", labels::CRR_POD_UID);
        let kind = ContainerRecreateRequest::kind(&());
        let barriers = self.fetch_barriers(&pod).await?;
        let (requests, mut events, of_requests) = try_join!(
            self.fetch_requests(false, Some(&of_pod)),
            self.fetch_events_by(format!("involvedObject.uid={uid}")),
            self.fetch_events_by(format!("involvedObject.kind={kind}")),
        )?;
        let ours: BTreeSet<_> = requests.iter().filter_map(ResourceExt::uid).collect();
        let is_ours = |event: &Event| {
            let uid = event.involved_object.uid.as_ref();
            uid.is_some_and(|uid| ours.contains(uid))
        };
        events.extend(of_requests.into_iter().filter(is_ours));
        Ok(Seen {
            pod,
            requests,
            events,
            barriers,
        })
    }

    /// Who may not read ConfigMaps is told the rest.
    async fn fetch_barriers(&self, pod: &Pod) -> Result<Barriers, Failure> {
        if !pod.labels().contains_key(labels::LAUNCH_BARRIER) {
            return Ok(Barriers::Unknown);
        }
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        let name = format!("{}{BARRIER_SUFFIX}", pod.name_any());
        match maps.get_opt(&name).await {
            Ok(Some(map)) => Ok(Barriers::Present(Box::new(map))),
            Ok(None) => Ok(Barriers::Absent),
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(Barriers::Unknown),
            Err(error) => Err(Failure::new(format!("reading ConfigMap {name}"), error)),
        }
    }

    async fn fetch_events_by(&self, fields: String) -> Result<Vec<Event>, Failure> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let list = events.list(&ListParams::default().fields(&fields)).await;
        let list = list.map_err(|error| Failure::new("listing the events", error))?;
        Ok(list.items)
    }
}

//! Requests to the API server.

mod watch;

use std::{collections::BTreeSet, fmt::Debug};

use futures::try_join;
use k8s_api::{convert::barrier_map_from_object, crd::ContainerRecreateRequest as Crr};
use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
        core::v1::{ConfigMap, Event, Pod},
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, PostParams},
    core::{NamespaceResourceScope, Selector},
};
use model::{labels, launch::BARRIER_SUFFIX};
use serde::de::DeserializeOwned;

pub(crate) use self::watch::News;
use crate::{
    args::Access,
    failure::{Failure, Result, no_answer},
    members::is_controlled_by,
    values::{Kind, Target},
    why::{Barriers, PodEvidence},
};

/// A namespaced kind of object.
pub(crate) trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + 'static
{
}

#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    pub(crate) namespace: String,
}

/// A workload's pods have these labels and one of these controllers.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) selector: String,
    /// Uids.
    pub(crate) controllers: BTreeSet<String>,
}

// === impl Cluster ===

impl Cluster {
    /// Sends nothing yet.
    pub(crate) async fn connect(access: &Access) -> Result<Self> {
        let (kubeconfig, context) = (access.kubeconfig.as_deref(), access.context.as_deref());
        let client = api_client::named(kubeconfig, context).await;
        let client = client.map_err(|error| no_answer("reading the kubeconfig", &error))?;
        let namespace = access.namespace.as_deref();
        let namespace = namespace.unwrap_or(client.default_namespace()).to_owned();
        Ok(Self { client, namespace })
    }

    fn api<K: Object>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// An object; errors name it by `prefix` and `name`.
    pub(crate) async fn fetch<K: Object>(&self, prefix: &str, name: &str) -> Result<K> {
        let object = self.api().get(name).await;
        object.map_err(|error| Failure::new(format!("reading {prefix}{name}"), &error))
    }

    pub(crate) async fn find<K: Object>(&self, prefix: &str, name: &str) -> Result<Option<K>> {
        let object = self.api().get_opt(name).await;
        object.map_err(|error| Failure::new(format!("reading {prefix}{name}"), &error))
    }

    async fn list<K: Object>(&self, which: &ListParams, what: &str) -> Result<Vec<K>> {
        list(self.api(), which, what).await
    }

    pub(crate) async fn fetch_pods(&self, selector: &str) -> Result<Vec<Pod>> {
        let which = ListParams::default().labels(selector);
        let what = format!("the pods with {selector}");
        self.list(&which, &what).await
    }

    pub(crate) async fn fetch_requests(
        &self,
        in_all_namespaces: bool,
        selector: Option<&str>,
    ) -> Result<Vec<Crr>> {
        let which = selector.map(|labels| ListParams::default().labels(labels));
        let which = which.unwrap_or_default();
        let api = match in_all_namespaces {
            true => Api::all(self.client.clone()),
            false => self.api(),
        };
        list(api, &which, "the requests").await
    }

    /// Events about a request and those that it caused on its pod: their names contain its uid.
    pub(crate) async fn fetch_events(&self, request: &Crr) -> Result<Vec<Event>> {
        let mut events: Vec<Event> = self.list(&ListParams::default(), "the events").await?;
        let prefix = format!("crr-{}-", request.uid().unwrap_or_default());
        events.retain(|event| event.name_any().starts_with(&prefix));
        Ok(events)
    }

    /// Creates a request; with `dry_run`, the server only checks it.
    pub(crate) async fn create(&self, request: &Crr, dry_run: bool) -> Result<Crr> {
        let how = PostParams {
            dry_run,
            field_manager: Some("kubectl-crr".to_owned()),
        };
        let created = self.api().create(&how, request).await;
        let pod = &request.spec.pod_name;
        created.map_err(|error| Failure::new(format!("the restart of pod {pod}"), &error))
    }

    /// The requests of a pod, its events and theirs, and its launch barriers.
    pub(crate) async fn fetch_pod_evidence(&self, pod: Pod) -> Result<PodEvidence> {
        let uid = pod.uid().unwrap_or_default();
        let of_pod = format!("{}={uid}", labels::CRR_POD_UID);
        let kind = Crr::kind(&());
        let about_pod = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
        let about_requests = ListParams::default().fields(&format!("involvedObject.kind={kind}"));
        let barriers = self.fetch_barriers(&pod).await?;
        let (requests, mut events, of_requests): (_, Vec<Event>, Vec<Event>) = try_join!(
            self.fetch_requests(false, Some(&of_pod)),
            self.list(&about_pod, "the events"),
            self.list(&about_requests, "the events"),
        )?;
        let uids: BTreeSet<_> = requests.iter().filter_map(ResourceExt::uid).collect();
        let is_ours = |event: &Event| {
            let uid = event.involved_object.uid.as_ref();
            uid.is_some_and(|uid| uids.contains(uid))
        };
        events.extend(of_requests.into_iter().filter(is_ours));
        Ok(PodEvidence {
            pod,
            requests,
            events,
            barriers,
        })
    }

    /// Without the right to read ConfigMaps the rest is still explained.
    async fn fetch_barriers(&self, pod: &Pod) -> Result<Barriers> {
        if !pod.labels().contains_key(labels::LAUNCH_BARRIER) {
            return Ok(Barriers::Unknown);
        }
        let name = format!("{}{BARRIER_SUFFIX}", pod.name_any());
        match self.api::<ConfigMap>().get_opt(&name).await {
            Ok(Some(map)) => Ok(Barriers::Present(barrier_map_from_object(&map))),
            Ok(None) => Ok(Barriers::Absent),
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(Barriers::Unknown),
            Err(error) => Err(Failure::new(format!("reading ConfigMap {name}"), &error)),
        }
    }

    /// Reads a workload; `target` is not a pod.
    pub(crate) async fn fetch_workload(&self, target: &Target) -> Result<Workload> {
        let name = &target.name;
        let (uid, selector) = match target.kind {
            Kind::Pod => (None, LabelSelector::default()),
            Kind::Deployment => {
                let it: Deployment = self.fetch("deployment/", name).await?;
                (it.uid(), it.spec.unwrap_or_default().selector)
            }
            Kind::StatefulSet => {
                let it: StatefulSet = self.fetch("statefulset/", name).await?;
                (it.uid(), it.spec.unwrap_or_default().selector)
            }
            Kind::DaemonSet => {
                let it: DaemonSet = self.fetch("daemonset/", name).await?;
                (it.uid(), it.spec.unwrap_or_default().selector)
            }
        };
        let selector = Selector::try_from(selector);
        let unreadable = |error| no_answer(format!("reading {target}"), &error);
        let selector = selector.map_err(unreadable)?.to_string();
        let mut controllers: BTreeSet<_> = uid.into_iter().collect();
        if target.kind == Kind::Deployment {
            let which = ListParams::default().labels(&selector);
            let mut sets: Vec<ReplicaSet> = self.list(&which, "the ReplicaSets").await?;
            sets.retain(|set| is_controlled_by(set, &controllers));
            controllers = sets.iter().filter_map(ResourceExt::uid).collect();
        }
        Ok(Workload {
            selector,
            controllers,
        })
    }
}

async fn list<K: Object>(api: Api<K>, which: &ListParams, what: &str) -> Result<Vec<K>> {
    let list = api.list(which).await;
    let list = list.map_err(|error| Failure::new(format!("listing {what}"), &error))?;
    Ok(list.items)
}

//! Workloads, their ReplicaSets and their pods, as they are now.

use std::{collections::BTreeSet, fmt::Debug};

use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{
    Api, Resource, ResourceExt,
    api::ListParams,
    core::{NamespaceResourceScope, Selector},
};
use serde::de::DeserializeOwned;

use super::Cluster;
use crate::{
    failure::Failure,
    members::is_controlled_by,
    target::{Kind, Target},
};

/// What finds a workload's pods: they bear the labels, and one of these controls them.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) selector: String,
    pub(crate) controllers: BTreeSet<String>,
}

// === impl Cluster: workloads ===

impl Cluster {
    /// A workload that was named; a pod is none.
    pub(crate) async fn fetch_workload(&self, target: &Target) -> Result<Workload, Failure> {
        let (uid, selector) = match target.kind {
            Kind::Pod => (None, LabelSelector::default()),
            Kind::Deployment => {
                let it: Deployment = self.fetch(target).await?;
                (it.uid(), it.spec.unwrap_or_default().selector)
            }
            Kind::StatefulSet => {
                let it: StatefulSet = self.fetch(target).await?;
                (it.uid(), it.spec.unwrap_or_default().selector)
            }
            Kind::DaemonSet => {
                let it: DaemonSet = self.fetch(target).await?;
                (it.uid(), it.spec.unwrap_or_default().selector)
            }
        };
        let selector = Selector::try_from(selector);
        let selector = selector
            .map_err(|error| Failure::unreachable(format!("reading {target}"), &error))?
            .to_string();
        let mut controllers: BTreeSet<_> = uid.into_iter().collect();
        if target.kind == Kind::Deployment {
            controllers = self.fetch_replica_sets(&selector, &controllers).await?;
        }
        Ok(Workload {
            selector,
            controllers,
        })
    }

    /// The pods with these labels.
    pub(crate) async fn fetch_pods(&self, selector: &str) -> Result<Vec<Pod>, Failure> {
        let which = ListParams::default().labels(selector);
        let pods = self.pods().list(&which).await;
        let doing = || format!("listing the pods with {selector}");
        Ok(pods.map_err(|error| Failure::new(doing(), error))?.items)
    }

    async fn fetch_replica_sets(
        &self,
        selector: &str,
        owners: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, Failure> {
        let sets: Api<ReplicaSet> = Api::namespaced(self.client.clone(), &self.namespace);
        let sets = sets.list(&ListParams::default().labels(selector)).await;
        let sets = sets.map_err(|error| Failure::new("listing the ReplicaSets", error))?;
        let ours = sets.into_iter().filter(|set| is_controlled_by(set, owners));
        Ok(ours.filter_map(|set| set.uid()).collect())
    }

    async fn fetch<K>(&self, target: &Target) -> Result<K, Failure>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.namespace);
        let it = api.get(&target.name).await;
        it.map_err(|error| Failure::new(format!("reading {target}"), error))
    }
}

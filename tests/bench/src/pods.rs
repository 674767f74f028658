//! The pods of a phase: how many fit, their beginning, their end.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::{Look, PodPlan, Space, wait_for};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};

use crate::{seen::Seen, watch::Watch};

pub(crate) const CONTAINERS: [&str; 2] = ["main", "neighbour"];

/// A hundred pods on two cores.
const UNTIL_PODS_CHANGED: Duration = Duration::from_secs(240);

/// Places left to others, such as a pod that is going while its successor comes.
const LEFT_TO_OTHERS: usize = 10;

/// How many more pods the nodes take by their kubelets' limit, and how many of the wanted that allows.
/// A node's address range is no smaller limit: 253 on the test cluster.
pub(crate) async fn fitting(space: &Space, wanted: usize) -> Result<usize> {
    let all = ListParams::default();
    let nodes = Api::<Node>::all(space.client.clone()).list(&all).await?;
    let pods = Api::<Pod>::all(space.client.clone()).list(&all).await?;
    let limits = nodes.items.iter().filter_map(limit);
    Ok(fit(wanted, limits.sum(), pods.items.len()))
}

fn fit(wanted: usize, limit: usize, there: usize) -> usize {
    wanted.min(limit.saturating_sub(there + LEFT_TO_OTHERS))
}

fn limit(node: &Node) -> Option<usize> {
    let spec = node.spec.as_ref()?;
    (spec.unschedulable != Some(true)).then_some(())?;
    let allocatable = node.status.as_ref()?.allocatable.as_ref()?;
    allocatable.get("pods")?.0.parse().ok()
}

/// Creates the pods and waits until the watch shows all their containers ready.
pub(crate) async fn start(space: &Space, watch: &mut Watch, names: &[String]) -> Result<()> {
    let plans: Vec<_> = names
        .iter()
        .map(|name| {
            let plan = PodPlan::new(name);
            CONTAINERS.into_iter().fold(plan, PodPlan::container)
        })
        .collect();
    try_join_all(plans.iter().map(|plan| space.create_pod(plan))).await?;
    let what = "all pods to be ready";
    // One after the other: what was seen stays seen.
    for name in names {
        for container in CONTAINERS {
            let is_ready = |seen: &Seen| seen.ready(name, container, 1).map(drop);
            watch.until(what, UNTIL_PODS_CHANGED, is_ready).await?;
        }
    }
    Ok(())
}

/// Removes one pod at once, and waits for nothing.
pub(crate) async fn drop_one(space: &Space, name: &str) -> Result<()> {
    let at_once = DeleteParams::default().grace_period(0);
    drop(space.pods().delete(name, &at_once).await?);
    Ok(())
}

/// Removes the space's pods, and waits until they are gone: by then the services have said all they had to say.
pub(crate) async fn remove(space: &Space) -> Result<()> {
    let all = ListParams::default();
    let (pods, as_usual) = (space.pods(), DeleteParams::default());
    let removed = pods.delete_collection(&as_usual, &all).await;
    drop(removed.context("failed to delete the pods")?);
    wait_for("the pods to be gone", UNTIL_PODS_CHANGED, async || {
        let left = space.pods().list(&all).await?.items.len();
        Ok(Look::is(left == 0, format!("{left} are left")))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_pods_than_the_nodes_take() {
        assert_eq!(fit(100, 220, 12), 100);
        assert_eq!(fit(100, 110, 12), 88);
        assert_eq!(fit(100, 10, 12), 0);
    }
}

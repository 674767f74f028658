//! The yardstick: a container stopped by hand on its node, and the kubelet's time to have it back.

use std::time::Duration;

use anyhow::{Context, Result};
use cluster::Cluster;
use e2e::{PATIENCE, Space};
use futures::future::try_join_all;
use tokio::time::Instant;

use crate::{seen::Seen, watch::Watch};

/// From the call until pod status shows the new container ready. crictl's own start is part of it.
pub(crate) async fn stop(
    space: &Space,
    cluster: &Cluster,
    watch: &mut Watch,
    pod: &str,
) -> Result<Duration> {
    let pods = [pod.to_owned()];
    stop_all(space, cluster, watch, &pods).await
}

/// The same of many pods at once, until the last is ready.
pub(crate) async fn stop_all(
    space: &Space,
    cluster: &Cluster,
    watch: &mut Watch,
    pods: &[String],
) -> Result<Duration> {
    let mut stops = Vec::new();
    for pod in pods {
        let spec = space.pods().get(pod).await?.spec;
        let node = spec.and_then(|spec| spec.node_name);
        let (id, _) = watch.seen.ready(pod, "main", 1).context("it was ready")?;
        let id = id.split_once("://").map_or(id.clone(), |(_, id)| id.into());
        stops.push((node.context("the pod has no node")?, id));
    }
    let begin = Instant::now();
    try_join_all(stops.iter().map(async |(node, id)| {
        let words = ["crictl", "stop", "--timeout", "30", id];
        cluster.run_on(node, &words).await
    }))
    .await?;
    let mut last = begin;
    for pod in pods {
        let ready = |seen: &Seen| seen.ready(pod, "main", 2).map(|(_, at)| *at);
        last = last.max(watch.until("a new container", PATIENCE, ready).await?);
    }
    Ok(last - begin)
}

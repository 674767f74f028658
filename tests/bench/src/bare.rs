//! The yardstick: a container stopped by hand on its node, and the kubelet's time to have it back.

use std::time::Duration;

use anyhow::{Context, Result};
use cluster::Cluster;
use e2e::{PATIENCE, Space};
use tokio::time::Instant;

use crate::{seen::Seen, watch::Watch};

/// From the call until pod status shows the new container ready. crictl's own start is part of it.
pub(crate) async fn stop(
    space: &Space,
    cluster: &Cluster,
    watch: &mut Watch,
    pod: &str,
) -> Result<Duration> {
    let spec = space.pods().get(pod).await?.spec;
    let node = spec.and_then(|spec| spec.node_name);
    let node = node.context("the pod has no node")?;
    let (id, _) = watch.seen.ready(pod, "main", 1).context("it was ready")?;
    let id = id.split_once("://").map_or(id.clone(), |(_, id)| id.into());
    let begin = Instant::now();
    let words = ["crictl", "stop", "--timeout", "30", &id];
    cluster.run_on(&node, &words).await?;
    let ready = |seen: &Seen| seen.ready(pod, "main", 2).map(|(_, at)| *at);
    let ready_at = watch.until("a new container", PATIENCE, ready).await?;
    Ok(ready_at - begin)
}

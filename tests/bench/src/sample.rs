//! One measurement: a fresh pod, one request, the time until it is Completed.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::{PodPlan, Space, Trace, is_completed, spec, state_of};
use futures::StreamExt;
use jiff::Timestamp;
use k8s_api::crd::ContainerRecreateRequest;
use kube::{
    api::DeleteParams,
    runtime::{WatchStreamExt, watcher},
};
use service_kit::clock;
use tokio::time::{Instant, sleep};

/// What was seen of one request.
pub(crate) struct Sample {
    pub(crate) request: ContainerRecreateRequest,
    created_at: Timestamp,
    /// From sending the creation until a watch showed Completed, by this program's clock.
    pub(crate) until_completed: Duration,
    pub(crate) has_succeeded: bool,
}

// === impl Sample ===

impl Sample {
    /// `phase`: at which part of a second after the pod is ready, as the kubelet looks for stopped containers
    /// once a second, and a pod becomes ready right after a look.
    pub(crate) async fn take(space: &Space, index: u32, phase: f64) -> Result<Self> {
        let name = format!("fresh-{index}");
        let plan = PodPlan::new(&name).container("main").container("neighbour");
        space.start(&plan).await?;
        let only = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let mut changes = watcher(space.requests(), only).boxed();
        // The first word of a watch that has listed nothing: from now on nothing is missed.
        while !matches!(changes.next().await, Some(Ok(watcher::Event::InitDone))) {}
        let mut changes = changes.applied_objects().boxed();

        sleep(Duration::from_secs_f64(phase)).await;

        let (created_at, begin) = (clock::now(), Instant::now());
        space.request(&name, spec(&name, &["main"])).await?;
        let request = loop {
            let request = changes.next().await.context("the watch has ended")??;
            if is_completed(&request) {
                break request;
            }
        };
        let until_completed = begin.elapsed();
        let at_once = DeleteParams::default().grace_period(0);
        space.pods().delete(&name, &at_once).await?;
        let state = state_of(&request, "main");
        Ok(Self {
            has_succeeded: state.is_some_and(|state| state.phase == "Succeeded"),
            request,
            created_at,
            until_completed,
        })
    }

    /// From sending the creation, by this program's clock, until the node called the runtime, by the node's.
    pub(crate) async fn until_stop(&self, space: &Space) -> Result<Duration> {
        let call = "cri StopContainer";
        let trace = Trace::wait_for(&space.client, &self.request, &[call]).await?;
        let span = trace.span(call).context("the span was waited for")?;
        let called_at = Timestamp::from_microsecond(i64::try_from(span.begins_at)?)?;
        let elapsed = called_at.duration_since(self.created_at);
        elapsed.try_into().context("the clocks disagree")
    }
}

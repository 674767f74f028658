//! One request on a pod that is ready: the times until its container is called to stop, is ready, is Completed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::{PATIENCE, Space, spec, wait_for_trace};
use jiff::Timestamp;
use k8s_api::crd::ContainerRecreateRequest;
use service_kit::clock;
use tokio::time::Instant;

use crate::{seen::Seen, watch::Watch};

/// What was seen of one request.
pub(crate) struct Sample {
    request: ContainerRecreateRequest,
    created_at: Timestamp,
    /// From sending the creation until a watch showed Completed, by this program's clock.
    pub(crate) until_completed: Duration,
    /// Until pod status showed the new container ready, by the same clock.
    pub(crate) until_ready: Duration,
}

/// The runtime's stop, as the request's trace has it.
pub(crate) struct Stop {
    /// From sending the creation, by this program's clock, until the node called the runtime, by the node's.
    pub(crate) after: Duration,
    pub(crate) took: Duration,
}

// === impl Sample ===

impl Sample {
    /// `instance`: which instance of the pod's main container it makes, the pod's first being 1.
    pub(crate) async fn take(
        space: &Space,
        watch: &mut Watch,
        (name, pod): (&str, &str),
        instance: usize,
    ) -> Result<Self> {
        let (created_at, begin) = (clock::now(), Instant::now());
        space.request(name, spec(pod, &["main"])).await?;
        let what = format!("request {name} to be Completed");
        let completed = |seen: &Seen| seen.completed(name).cloned();
        let (completed_at, request) = watch.until(&what, PATIENCE, completed).await?;
        let has_succeeded = watch.seen.has_succeeded(name, "main");
        ensure!(has_succeeded, "request {name} did not succeed");
        let ready = |seen: &Seen| seen.ready(pod, "main", instance).map(|(_, at)| *at);
        let what = format!("instance {instance} of pod {pod}");
        let ready_at = watch.until(&what, PATIENCE, ready).await?;
        Ok(Self {
            request,
            created_at,
            until_completed: completed_at - begin,
            until_ready: ready_at - begin,
        })
    }

    /// Zero where Completed was seen first.
    pub(crate) fn after_ready(&self) -> Duration {
        self.until_completed.saturating_sub(self.until_ready)
    }

    pub(crate) async fn stop(&self, space: &Space) -> Result<Stop> {
        let call = "cri StopContainer";
        let trace = wait_for_trace(&space.client, &self.request, &[call]).await?;
        let span = trace.span(call).context("the span was waited for")?;
        let called_at = Timestamp::from_microsecond(i64::try_from(span.begins_at)?)?;
        let elapsed = called_at.duration_since(self.created_at);
        Ok(Stop {
            after: elapsed.try_into().context("the clocks disagree")?,
            took: span.duration,
        })
    }
}

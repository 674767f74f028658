//! The machine's effects, carried out: requests as tasks, launches as spans, metrics and log lines.
//!
//! Owns the requests under way, and the spans of the launches that are reported. It neither retries requests nor drops
//! their results: each result is an event of the machine.

use std::collections::HashMap;

use api_client::events::publish_with_retry;
use barrier_rules::{Action, Effect, Event, FetchResult, LaunchEvent, Write, WriteResult};
use k8s_api::convert::barrier_map_from_object;
use model::{
    error_chain::ErrorChain,
    ids::{PodKey, PodUid},
    time::Now,
};
use service_kit::trace;
use tokio::task::{JoinError, JoinSet};
use tracing::{Instrument, Span, debug, info, info_span, warn};

use crate::{
    cluster::{Cluster, WriteError},
    metrics::Metrics,
    observe::parse_pod,
};

/// Carries effects out.
pub(crate) struct Effects {
    cluster: Cluster,
    metrics: Metrics,
    /// Of each reported launch, and of its present level.
    spans: HashMap<PodUid, (Span, Span)>,
    /// Each ends with its result; the publication of an event has none.
    requests: JoinSet<Option<Event>>,
}

// === impl Effects ===

impl Effects {
    pub(crate) fn new(cluster: Cluster, metrics: Metrics) -> Self {
        Self {
            cluster,
            metrics,
            spans: HashMap::new(),
            requests: JoinSet::new(),
        }
    }

    /// The end of a request: its result, if it has one. `None` while no request is under way. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Result<Option<Event>, JoinError>> {
        self.requests.join_next().await
    }

    /// Begins a request, or reports the progress of a launch.
    pub(crate) fn perform(&mut self, effect: Effect, now: Now) {
        let Effect { pod, uid, action } = effect;
        match action {
            Action::Write(write) => self.write(pod, uid, write),
            Action::FetchMap => self.fetch_map(pod, uid),
            Action::PublishEvent(event) => self.publish(pod, uid, event, now),
            Action::StartAccepted => {
                self.metrics.hints.inc();
            }
            Action::LaunchBegun { traceparent } => {
                let whole = info_span!("launch", ns = %pod.namespace, pod = %pod.name, %uid);
                if let Some(traceparent) = &traceparent {
                    trace::set_parent(&whole, traceparent);
                }
                self.spans.insert(uid, (whole, Span::none()));
            }
            Action::LevelBegun { level, containers } => {
                if let Some((whole, part)) = self.spans.get_mut(&uid) {
                    let names: Vec<_> = containers.iter().map(|name| name.as_str()).collect();
                    *part =
                        info_span!(parent: &*whole, "level", %level, containers = names.join(","));
                }
            }
            Action::LevelEnded { level, took } => {
                let seconds = took.as_secs_f64();
                self.metrics.level_duration.observe(seconds);
                info!(%pod, %level, seconds, "Level ended");
            }
            Action::LaunchEnded { is_launched } => {
                self.spans.remove(&uid);
                if is_launched {
                    self.metrics.launched.inc();
                    info!(%pod, "Launch completed");
                }
            }
        }
    }

    fn write(&mut self, pod: PodKey, uid: PodUid, write: Write) {
        info!(%pod, ?write, "Launch continues");
        let span = match self.spans.get(&uid) {
            Some((_, level)) => info_span!(parent: level, "write", what = name_of(&write)),
            // A write after the launch is no trace of its own.
            None => Span::none(),
        };
        let (cluster, metrics) = (self.cluster.clone(), self.metrics.clone());
        let request = async move {
            let result = perform(&cluster, &pod, &uid, write).await;
            metrics.writes.count(match &result {
                Ok(WriteResult::Failed(_)) => "failed",
                Ok(_) => "ok",
                Err(error) => error.kind(),
            });
            let result = result.unwrap_or_else(|error| match error {
                WriteError::Conflict | WriteError::Gone => WriteResult::MapConflict,
                WriteError::Failed(_) => WriteResult::Failed(refusal(&pod, &error)),
            });
            Some(Event::Written { pod, uid, result })
        };
        self.requests.spawn(request.instrument(span));
    }

    fn fetch_map(&mut self, pod: PodKey, uid: PodUid) {
        let (cluster, metrics) = (self.cluster.clone(), self.metrics.clone());
        self.requests.spawn(async move {
            let result = match cluster.fetch_map(&pod).await {
                Ok(Some(map)) => FetchResult::Found(barrier_map_from_object(&map)),
                Ok(None) => FetchResult::Absent,
                Err(error) => {
                    metrics.writes.count("failed");
                    FetchResult::Failed(refusal(&pod, &error))
                }
            };
            Some(Event::Fetched { pod, uid, result })
        });
    }

    /// A publication that fails is retried a few times, then dropped.
    fn publish(&mut self, pod: PodKey, uid: PodUid, event: LaunchEvent, now: Now) {
        self.metrics.stuck.inc();
        info!(%pod, reason = event.message, "Launch is stuck");
        let cluster = self.cluster.clone();
        self.requests.spawn(async move {
            let publish = || cluster.publish(&pod, &uid, &event, now.wall);
            if let Err(error) = publish_with_retry(publish).await {
                debug!(%pod, event.name, error = %ErrorChain(&error), "Failed to publish an event");
            }
            None
        });
    }
}

async fn perform(
    cluster: &Cluster,
    pod: &PodKey,
    uid: &PodUid,
    write: Write,
) -> Result<WriteResult, WriteError> {
    let map =
        match write {
            Write::CreateMap { keys } => cluster.create_map(pod, uid, &keys).await?,
            Write::AddKeys { keys, uid } => cluster.add_keys(pod, &uid, &keys).await?,
            Write::EmptyMap { uid } => cluster.empty_map(pod, &uid).await?,
            Write::DeleteMap { uid } => {
                cluster.delete_map(pod, &uid).await?;
                return Ok(WriteResult::MapDeleted);
            }
            Write::Nudge { level, completes } => {
                return match cluster.nudge(pod, uid, level, completes).await {
                    Ok(object) => Ok(parse_pod(&object)
                        .map_or(WriteResult::Failed(None), WriteResult::PodWritten)),
                    Err(WriteError::Gone) => Ok(WriteResult::PodGone),
                    Err(WriteError::Conflict) => Ok(WriteResult::PodBusy),
                    Err(error) => Err(error),
                };
            }
        };
    Ok(WriteResult::MapWritten(barrier_map_from_object(&map)))
}

/// Logs a request that failed. Returns the API server's message if it rejects the request itself.
fn refusal(pod: &PodKey, error: &WriteError) -> Option<String> {
    warn!(%pod, error = %ErrorChain(error), "Request for a launch failed; retrying");
    error.refusal().map(str::to_owned)
}

fn name_of(write: &Write) -> &'static str {
    match write {
        Write::CreateMap { .. } => "create ConfigMap",
        Write::DeleteMap { .. } => "delete ConfigMap",
        Write::EmptyMap { .. } => "empty ConfigMap",
        Write::AddKeys { .. } => "add keys",
        Write::Nudge { .. } => "nudge",
    }
}

#[cfg(test)]
mod tests;

//! Carrying a plan out: at most one write for a pod at a time, each a task of its own.
//!
//! Owns the requests' tasks. Each ends as an event of the driver.

use api_client::events::publish_with_retry;
use barrier_rules::{LaunchEvent, Write};
use jiff::Timestamp;
use model::{
    error_chain::ErrorChain,
    ids::{PodKey, PodUid},
    launch::LaunchPod,
};
use tracing::{Instrument, debug, info, info_span};

use super::{Driver, Event, Written};
use crate::cluster::{Cluster, WriteError};

impl Driver {
    /// Begins a write; its answer is an event.
    pub(super) fn write(&mut self, pod: &PodKey, write: Write) {
        let Some(tracked) = self.tracked.get_mut(pod) else {
            return;
        };
        tracked.is_writing = true;
        info!(%pod, ?write, "Launch goes on");
        let span = match tracked.span() {
            // What is written after the launch is no trace of its own.
            launch if launch.is_none() => launch,
            launch => info_span!(parent: launch, "write", what = name_of(&write)),
        };
        let (cluster, uid) = (self.cluster.clone(), tracked.launch.pod.uid.clone());
        let pod = pod.clone();
        let request = async move {
            let result = perform(&cluster, &pod, &uid, write).await;
            Event::Written(pod, uid, result)
        };
        self.requests.spawn(request.instrument(span));
    }

    /// Fetches the pod's ConfigMap; the pod counts as being written meanwhile.
    pub(super) fn fetch_map(&mut self, pod: &PodKey) {
        let Some(tracked) = self.tracked.get_mut(pod) else {
            return;
        };
        tracked.is_writing = true;
        let LaunchPod { pod: known, .. } = &tracked.launch;
        let (cluster, pod, uid) = (self.cluster.clone(), pod.clone(), known.uid.clone());
        self.requests.spawn(async move {
            let result = cluster.fetch_map(&pod).await;
            Event::Fetched(pod, uid, result)
        });
    }

    /// Tells the events that were not told yet. One that cannot be told is tried again a few times, then dropped.
    pub(super) fn tell(&mut self, pod: &PodKey, events: Vec<LaunchEvent>, now: Timestamp) {
        let Some(tracked) = self.tracked.get_mut(pod) else {
            return;
        };
        for event in events {
            if !tracked.told.insert(event.name.clone()) {
                continue;
            }
            self.metrics.stuck.inc();
            info!(%pod, reason = event.message, "Launch is stuck");
            let (cluster, uid) = (self.cluster.clone(), tracked.launch.pod.uid.clone());
            let pod = pod.clone();
            self.requests.spawn(async move {
                if let Err(error) =
                    publish_with_retry(|| cluster.tell(&pod, &uid, &event, now)).await
                {
                    debug!(%pod, event.name, error = %ErrorChain(&error), "Event was not told");
                }
                Event::Told
            });
        }
    }
}

async fn perform(
    cluster: &Cluster,
    pod: &PodKey,
    uid: &PodUid,
    write: Write,
) -> Result<Written, WriteError> {
    match write {
        Write::CreateMap { keys } => {
            let map = cluster.create_map(pod, uid, &keys).await?;
            Ok(Written::Map(Box::new(map)))
        }
        Write::AddKeys { keys, uid } => {
            let map = cluster.add_keys(pod, &uid, &keys).await?;
            Ok(Written::Map(Box::new(map)))
        }
        Write::EmptyMap { uid } => {
            let map = cluster.empty_map(pod, &uid).await?;
            Ok(Written::Map(Box::new(map)))
        }
        Write::DeleteMap { uid } => {
            cluster.delete_map(pod, &uid).await?;
            Ok(Written::NoMap)
        }
        Write::Nudge { level, completes } => {
            match cluster.nudge(pod, uid, level, completes).await {
                Ok(object) => Ok(Written::Pod(Box::new(object))),
                Err(WriteError::Gone) => Ok(Written::NoPod),
                // Another pod of that name, which the watch will show, or a crowd of writers.
                Err(WriteError::Conflict) => Ok(Written::Busy),
                Err(error) => Err(error),
            }
        }
    }
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

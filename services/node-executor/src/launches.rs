//! Publishes container starts behind launch barriers to the barrier-manager.
//!
//! Owns the choice among the observations. A published start is a hint: nothing depends on it, and pod status shows a
//! lost one a little later. Each list of containers publishes all that run.

use bus::Bus;
use cri::{ContainerState, Observation};
use model::{
    ids::NodeName,
    labels::{LAUNCH_BARRIER, LAUNCH_BARRIER_TRUE},
    launch::Started,
};
use service_kit::Shutdown;
use tokio::sync::mpsc;
use tracing::debug;

use crate::{metrics::Metrics, runtime::Update};

pub(crate) struct StartPublisher {
    pub(crate) node: NodeName,
    pub(crate) bus: Bus,
    pub(crate) updates: mpsc::Receiver<Update>,
    pub(crate) metrics: Metrics,
}

// === impl StartPublisher ===

impl StartPublisher {
    pub(crate) async fn publish_starts(mut self, shutdown: Shutdown) {
        loop {
            let update = tokio::select! {
                () = shutdown.wait() => return,
                update = self.updates.recv() => update,
            };
            let Some(observations) = update else {
                return;
            };
            for started in observations.iter().filter_map(start_of) {
                self.publish(&started).await;
            }
        }
    }

    async fn publish(&self, started: &Started) {
        let published = self.bus.publish_started(&self.node, started).await;
        let result = if published.is_ok() { "told" } else { "lost" };
        self.metrics.starts.count(result);
        debug!(pod = %started.pod, container = %started.container, result, "Container started");
    }
}

/// The start that an observation shows; `None` unless a container behind a barrier runs.
fn start_of(observation: &Observation) -> Option<Started> {
    let barrier = observation.sandbox_labels.get(LAUNCH_BARRIER);
    let is_started = observation.state == ContainerState::Running
        && barrier.map(String::as_str) == Some(LAUNCH_BARRIER_TRUE);
    is_started.then(|| Started {
        pod: observation.pod.clone(),
        pod_uid: observation.pod_uid.clone(),
        container: observation.container.clone(),
        container_id: observation.container_id.clone(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::ids::PodKey;

    use super::*;

    fn observation(state: ContainerState, barrier: &str) -> Observation {
        Observation {
            pod: PodKey {
                namespace: "shop".into(),
                name: "web".into(),
            },
            pod_uid: "u".into(),
            container: "proxy".into(),
            container_id: "proxy-1".into(),
            state,
            sandbox_labels: BTreeMap::from([(LAUNCH_BARRIER.to_owned(), barrier.to_owned())]),
        }
    }

    #[test]
    fn only_a_running_container_behind_a_barrier_is_a_start() {
        let started = start_of(&observation(ContainerState::Running, "true")).unwrap();
        assert_eq!(started.container_id, "proxy-1".into());
        for (state, barrier) in [
            (ContainerState::Running, "false"),
            (ContainerState::Created, "true"),
            (ContainerState::Exited, "true"),
            (ContainerState::Unknown, "true"),
        ] {
            assert_eq!(start_of(&observation(state, barrier)), None, "{state:?}");
        }
        let mut unlabelled = observation(ContainerState::Running, "true");
        unlabelled.sandbox_labels.clear();
        assert_eq!(start_of(&unlabelled), None);
    }
}

//! Opening the readiness gate of new pods.
//!
//! Owns the first word on `KruisePodReady`: a pod with that gate is ready only once somebody has said True. What a CRR
//! says of the gate later is the driver's. Pods are found by the label that admission puts beside the gate.

use std::time::Duration;

use crr_rules::GateWrite;
use futures::{Stream, StreamExt};
use model::{
    error_chain::ErrorChain,
    pod::{Gate, Pod},
};
use service_kit::{backoff::Backoff, clock};
use tokio::{sync::Semaphore, time::sleep};
use tracing::{debug, warn};

use crate::cluster::{Cluster, WriteError};

/// How many gates are opened at once.
const AT_ONCE: usize = 16;

/// The bounds of the pause after a write that failed for no reason of the pod's.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Opens gates until it is dropped.
pub(crate) async fn open_gates(cluster: Cluster) {
    let unsaid = cluster.watch_gated_pods().filter(|pod| {
        let is_unsaid = matches!(&pod.gate, Some(Gate { is_open: None, .. }));
        std::future::ready(is_unsaid && !pod.is_being_deleted)
    });
    open_each(unsaid, |pod| {
        let cluster = cluster.clone();
        async move {
            let gate = GateWrite {
                pod_version: pod.version.clone(),
                is_open: true,
                message: "[]".to_owned(),
                is_ready_too: false,
            };
            let written = cluster
                .write_gate(&pod.key, &pod.uid, &gate, clock::now())
                .await;
            written.map(drop)
        }
    })
    .await;
}

/// Whoever waits to try again keeps nobody else from a turn.
async fn open_each<W>(pods: impl Stream<Item = Pod>, write: impl Fn(Pod) -> W)
where
    W: Future<Output = Result<(), WriteError>>,
{
    let room = Semaphore::new(AT_ONCE);
    pods.for_each_concurrent(None, |pod| open(pod, &room, &write))
        .await;
}

async fn open<W>(pod: Pod, room: &Semaphore, write: impl Fn(Pod) -> W)
where
    W: Future<Output = Result<(), WriteError>>,
{
    let mut backoff = Backoff::new(AGAIN_AFTER, LONGEST_PAUSE);
    loop {
        let turn = room.acquire().await;
        let result = write(pod.clone()).await;
        drop(turn);
        let Err(error) = result else {
            return;
        };
        match &error {
            WriteError::Conflict | WriteError::Gone => {
                // A newer pod is on its way, if there is one.
                debug!(pod = %pod.key, error = %ErrorChain(&error), "Gate was not opened");
                return;
            }
            // As long as the pod is as it is, it will not be taken.
            WriteError::Failed(_) if error.refusal().is_some() => {
                warn!(pod = %pod.key, error = %ErrorChain(&error), "Gate may not be opened, waiting for the pod to change");
                return;
            }
            WriteError::Failed(_) => {
                warn!(pod = %pod.key, error = %ErrorChain(&error), "Gate was not opened, trying again");
                sleep(backoff.next_delay()).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::stream;
    use serde_json::json;
    use tokio::time::timeout;

    use super::*;

    fn pod(name: &str) -> Pod {
        let metadata = json!({ "name": name, "namespace": "shop", "uid": name });
        let object = json!({ "metadata": metadata, "spec": { "containers": [] } });
        let object = serde_json::from_value(object).unwrap();
        k8s_api::convert::pod_from_object(&object).unwrap()
    }

    fn refused_with(code: u16) -> WriteError {
        let status = json!({ "code": code, "status": "Failure", "message": "policy says no" });
        kube::Error::Api(serde_json::from_value(status).unwrap()).into()
    }

    /// How often each pod was written until all was settled, or a virtual hour had passed.
    async fn writes(
        names: &[&str],
        answer: impl Fn(&str, usize) -> Result<(), WriteError>,
    ) -> Vec<usize> {
        let tries = Mutex::new(vec![0; names.len()]);
        let write = |pod: Pod| {
            let name = pod.key.name.as_str();
            let index = names.iter().position(|other| *other == name).unwrap();
            let mut tries = tries.lock().unwrap();
            tries[index] += 1;
            std::future::ready(answer(name, tries[index]))
        };
        let pods = stream::iter(names.iter().map(|name| pod(name)));
        let hour = Duration::from_secs(3600);
        drop(timeout(hour, open_each(pods, write)).await);
        tries.into_inner().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_for_good_is_written_once() {
        for code in [400, 403, 404, 409, 422] {
            let tries = writes(&["a"], |_, _| Err(refused_with(code))).await;
            assert_eq!(tries, [1], "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_is_written_again_until_it_is_taken() {
        let answer = |_: &str, tries| {
            if tries < 4 {
                Err(refused_with(500))
            } else {
                Ok(())
            }
        };
        assert_eq!(writes(&["a"], answer).await, [4]);
    }

    #[tokio::test(start_paused = true)]
    async fn pods_that_fail_for_ever_keep_no_other_from_its_turn() {
        let names: Vec<_> = (0..AT_ONCE).map(|index| format!("bad-{index}")).collect();
        let mut names: Vec<_> = names.iter().map(String::as_str).collect();
        names.push("good");
        let answer = |name: &str, _| {
            if name == "good" {
                Ok(())
            } else {
                Err(refused_with(500))
            }
        };
        let tries = writes(&names, answer).await;
        assert_eq!(tries.last(), Some(&1));
        // Half of 30 s between two, on the average.
        assert!(tries.iter().all(|tries| *tries < 500), "{tries:?}");
    }
}

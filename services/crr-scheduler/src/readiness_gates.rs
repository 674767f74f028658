//! The readiness gates of new pods.
//!
//! Carries out `crr_rules::open_new_gate` for every gated pod; what a CRR does to a gate later is the machine's. Pods are
//! found by the label that admission writes beside the gate.

use std::future::ready;

use crr_rules::{GateWrite, open_new_gate};
use futures::{Stream, StreamExt};
use model::{error_chain::ErrorChain, pod::Pod, retry::API_WRITE};
use service_kit::{backoff::Backoff, clock};
use tokio::{sync::Semaphore, time::sleep};
use tracing::{debug, warn};

use crate::cluster::{Cluster, WriteError};

/// Opens gates until it is dropped.
pub(crate) async fn open_gates(cluster: Cluster) {
    let shut = cluster.watch_gated_pods().filter_map(|pod| {
        let gate = open_new_gate(&pod);
        ready(gate.map(|gate| (pod, gate)))
    });
    open_each(shut, |pod, gate| {
        let cluster = cluster.clone();
        async move {
            let written = cluster.write_gate(&pod.key, &pod.uid, &gate, clock::now());
            written.await.map(drop)
        }
    })
    .await;
}

/// How many gates are written at once: writes of CRRs have the other permits of the client.
const AT_ONCE: usize = 8;

/// A pod whose gate waits for a retry delays no other pod.
async fn open_each<W>(
    shut: impl Stream<Item = (Pod, GateWrite)>,
    write: impl Fn(Pod, GateWrite) -> W,
) where
    W: Future<Output = Result<(), WriteError>>,
{
    let permits = Semaphore::new(AT_ONCE);
    let write = |pod, gate| {
        let (permits, write) = (&permits, &write);
        async move {
            let _permit = permits.acquire().await;
            write(pod, gate).await
        }
    };
    shut.for_each_concurrent(None, |(pod, gate)| open(pod, gate, &write))
        .await;
}

async fn open<W>(pod: Pod, gate: GateWrite, write: impl Fn(Pod, GateWrite) -> W)
where
    W: Future<Output = Result<(), WriteError>>,
{
    let mut backoff = Backoff::new(API_WRITE.first, API_WRITE.longest);
    while let Err(error) = write(pod.clone(), gate.clone()).await
        && may_succeed_later(&pod, &error)
    {
        sleep(backoff.next_delay()).await;
    }
}

/// False if only a change of the pod can help, which the watch will show.
fn may_succeed_later(pod: &Pod, error: &WriteError) -> bool {
    let (pod, cause) = (&pod.key, ErrorChain(error));
    match error {
        WriteError::Conflict | WriteError::Gone => {
            debug!(%pod, error = %cause, "Pod has changed; its gate was not opened");
        }
        WriteError::Failed(_) if error.is_permanent() => {
            warn!(%pod, error = %cause, "Gate was refused; waiting for the pod to change");
        }
        WriteError::Failed(_) => warn!(%pod, error = %cause, "Failed to open a gate; retrying"),
    }
    !error.is_permanent()
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::Duration};

    use futures::stream;
    use serde_json::json;
    use tokio::time::timeout;

    use super::*;

    /// A new pod of that name, and its gate.
    fn shut(name: &str) -> (Pod, GateWrite) {
        let pod = testkit::pod(&[]).named(name).gated(None, "").build();
        let gate = open_new_gate(&pod).unwrap();
        (pod, gate)
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
        let write = |pod: Pod, _: GateWrite| {
            let name = pod.key.name.as_str();
            let index = names.iter().position(|other| *other == name).unwrap();
            let mut tries = tries.lock().unwrap();
            tries[index] += 1;
            ready(answer(name, tries[index]))
        };
        let shut = names.iter().map(|name| shut(name));
        let hour = Duration::from_secs(3600);
        drop(timeout(hour, open_each(stream::iter(shut), write)).await);
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
        let names: Vec<_> = (0..16).map(|index| format!("bad-{index}")).collect();
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

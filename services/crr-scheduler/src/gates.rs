//! Opening the readiness gate of new pods.
//!
//! Owns the first word on `KruisePodReady`: a pod with that gate is ready only once somebody has said True. What a CRR says
//! of the gate later is the driver's. Pods are found by the label that admission puts beside the gate.

use std::time::Duration;

use crr_rules::GateWrite;
use futures::StreamExt;
use model::pod::{Gate, Pod};
use service_kit::{ErrorChain, clock};
use tokio::time::sleep;
use tracing::{debug, warn};

use crate::cluster::{Cluster, WriteError};

/// How many gates are opened at once.
const AT_ONCE: usize = 16;

/// After a write that failed for no reason of the pod's.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Opens gates until it is dropped.
pub(crate) async fn open_gates(cluster: Cluster) {
    let unsaid = cluster.watch_gated_pods().filter(|pod| {
        let is_unsaid = matches!(&pod.gate, Some(Gate { is_open: None, .. }));
        std::future::ready(is_unsaid && !pod.is_being_deleted)
    });
    unsaid
        .for_each_concurrent(AT_ONCE, |pod| open(cluster.clone(), pod))
        .await;
}

async fn open(cluster: Cluster, pod: Pod) {
    let gate = GateWrite {
        pod_version: pod.version.clone(),
        is_open: true,
        message: "[]".to_owned(),
        is_ready_too: false,
    };
    loop {
        match cluster
            .write_gate(&pod.key, &pod.uid, &gate, clock::now())
            .await
        {
            Ok(_) => return,
            Err(error @ (WriteError::Conflict | WriteError::Gone)) => {
                // A newer pod is on its way, if there is one.
                debug!(pod = %pod.key, error = %ErrorChain(&error), "Gate was not opened");
                return;
            }
            Err(error @ WriteError::Failed(_)) => {
                warn!(pod = %pod.key, error = %ErrorChain(&error), "Gate was not opened, trying again");
                sleep(AGAIN_AFTER).await;
            }
        }
    }
}

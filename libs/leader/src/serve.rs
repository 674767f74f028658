//! The tasks of a service with a leader: admin port, elector, and the leader's work.
//!
//! Owns the client of the Lease. It has no concurrency limit: a burst of the service's writes must not delay a renewal.

use std::time::Duration;

use anyhow::Context;
use api_client::{RequestPolicy, Retries};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use serde_json::json;
use service_kit::{Kit, clock};
use tokio::select;

use crate::{Args, Elector, Timing};

/// Longest shutdown: one write that is under way, and the release of the Lease.
const DRAIN: Duration = Duration::from_secs(5);

/// The elector has its own retries.
const POLICY: RequestPolicy = RequestPolicy {
    retries: Retries::None,
    at_once: None,
};

/// Runs the replica `args.identity` of `service` until a signal or the end of a task.
///
/// `work` makes the leader's work, once for each period of leadership; it is dropped when the leadership is lost. The
/// name of the Lease is `service`.
///
/// # Errors
/// No Kubernetes configuration, or a task that failed.
pub async fn serve<W>(
    args: &Args,
    service: &'static str,
    mut kit: Kit,
    work: impl FnMut() -> W + Send + 'static,
) -> anyhow::Result<()>
where
    W: Future<Output = anyhow::Result<()>> + Send,
{
    let client = api_client::infer(service, POLICY)
        .await
        .context("failed to find the API server")?;
    let leases: Api<Lease> = Api::namespaced(client, &args.namespace);
    let identity = args.identity.as_deref().unwrap_or(service);
    let elector = Elector::new(leases, service, identity, Timing::default(), clock::now);
    let mut leadership = elector.leadership();
    let state = kit.admin.state();
    let shutdown = kit.shutdown.clone();
    kit.admin.readiness().set("started", true);

    kit.tasks.add("admin", kit.admin.serve(shutdown.clone()));
    kit.tasks.add("elector", {
        let shutdown = shutdown.clone();
        async move {
            elector.run(async move { shutdown.wait().await }).await;
            Ok(())
        }
    });
    kit.tasks.add("leader", async move {
        let lost = || state.store(json!({ "leads": false }));
        select! {
            () = shutdown.wait() => Ok(()),
            end = leadership.lead(work, lost) => end,
        }
    });
    kit.tasks.run_to_end(DRAIN).await
}

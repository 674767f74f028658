//! Every task and every port of admission.

use std::time::Duration;

use anyhow::Context;
use api_client::{RequestPolicy, Retries};
use axum::Router;
use axum_server::{
    Handle,
    accept::NoDelayAcceptor,
    tls_rustls::{RustlsAcceptor, RustlsConfig},
};
use bus::Bus;
use service_kit::{Kit, Shutdown};
use tokio::sync::watch;
use tracing::info;

use crate::{Args, api, cluster::Cluster, conversion, keeper::Keeper, metrics::Metrics};

/// How long reviews under way may take at the end; longer than the API server waits.
const DRAIN: Duration = Duration::from_secs(11);

/// Between the wish to end and the closed port: endpoints have to hear of it first.
const LINGER: Duration = Duration::from_secs(2);

/// The API server asks for a review once: a server that is busy for a moment is no reason to refuse a request.
const POLICY: RequestPolicy = RequestPolicy {
    retries: Retries::Brief,
    at_once: None,
};

/// Runs until a signal or a task's end.
///
/// # Errors
/// No Kubernetes configuration, unusable bus settings, or a port that cannot be opened.
pub async fn run(args: Args, mut kit: Kit) -> anyhow::Result<()> {
    let client = api_client::infer("admission", POLICY).await;
    let client = client.context("failed to find the API server")?;
    let bus = Bus::connect(&args.bus, "admission").await;
    let bus = bus.context("failed to set the bus up")?;
    let metrics = Metrics::register(kit.admin.registry());
    let readiness = kit.admin.readiness();
    let (tls_sender, tls) = watch::channel(None);
    let keeper = Keeper::new(client.clone(), args.clone(), readiness, tls_sender);
    let gate_scope = args.readiness_gate.into();
    let router = api::router(Cluster::new(client, bus), metrics.clone(), gate_scope)
        .merge(conversion::router(metrics));
    let shutdown = kit.shutdown.clone();

    kit.tasks.add("admin", kit.admin.serve(shutdown.clone()));
    kit.tasks.add("keeper", {
        let shutdown = shutdown.clone();
        async move {
            Box::pin(keeper.run(async move { shutdown.wait().await })).await;
            Ok(())
        }
    });
    kit.tasks.add("webhook", serve(args, router, tls, shutdown));
    kit.tasks.run_to_end(DRAIN + LINGER).await
}

/// Serves the webhook once there is a certificate.
async fn serve(
    args: Args,
    router: Router,
    mut tls: watch::Receiver<Option<RustlsConfig>>,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let config = tokio::select! {
        () = shutdown.wait() => return Ok(()),
        config = tls.wait_for(Option::is_some) => config.context("the keeper is gone")?.clone(),
    };
    let Some(config) = config else { return Ok(()) };
    let handle = Handle::new();
    // Without Nagle's algorithm: a review is one small answer that the API server waits for.
    let acceptor = RustlsAcceptor::new(config).acceptor(NoDelayAcceptor::new());
    let server = axum_server::bind(args.listen)
        .acceptor(acceptor)
        .handle(handle.clone())
        .serve(router.into_make_service());
    info!(listen = %args.listen, "Webhook port is open");
    tokio::pin!(server);
    tokio::select! {
        result = &mut server => return result.context("failed to serve the webhook"),
        () = shutdown.wait() => {}
    }
    // Endpoints still send us reviews for a moment: go on answering them.
    tokio::select! {
        result = &mut server => return result.context("failed to serve the webhook"),
        () = tokio::time::sleep(LINGER) => handle.graceful_shutdown(Some(DRAIN)),
    }
    server.await.context("failed to serve the webhook")
}

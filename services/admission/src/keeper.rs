//! The keeper of the certificates of the webhooks and of the bus.
//!
//! Owns when certificates are renewed and served, and when our CA is written (`certificate_secret.rs`,
//! `ca_bundle.rs`). The watches are only hints: each check reads all objects again, so that a replica whose watch is
//! behind never writes an old CA over a new one. A renewed leaf of the webhooks is served without a restart; NATS
//! mounts the certificate of the bus, and its clients mount the CA.
//!
//! Rights: in its namespace create secrets, and get, list, watch and update the two Secrets by name.

use std::{fmt::Debug, future::ready, pin::pin, time::Duration};

use api_client::WatchEvent;
use axum_server::tls_rustls::RustlsConfig;
use futures::{
    Stream, StreamExt,
    stream::{BoxStream, select_all},
};
use k8s_openapi::{
    api::{admissionregistration::v1::MutatingWebhookConfiguration, core::v1::Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    serde::de::DeserializeOwned,
};
use kube::{
    Api, Client, Resource,
    core::{DeserializeGuard, PartialObjectMeta},
    runtime::watcher,
};
use model::error_chain::ErrorChain;
use service_kit::{Readiness, backoff::Backoff};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};
use tracing::{info, warn};

use crate::{
    Args,
    ca_bundle::{CRD, CaTargets},
    call_error::CallError,
    certificate_secret::{CertificateSecret, SecretError},
    certificates::{Certificates, Purpose},
};

/// The pause between two checks if no watch reports a change.
const CHECK_EVERY: Duration = Duration::from_secs(3600);

/// Bounds of the pause after a failure.
const RETRY_AFTER: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// The pause between writing a new CA and serving the leaf that it signed, in which API servers learn of the CA.
const CA_KNOWN_AFTER: Duration = Duration::from_secs(2);

/// Changes that one check handles at most.
const CHANGES: usize = 16;

#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("the certificates of the secret cannot be served")]
    Serve(#[from] std::io::Error),
}

/// Keeps Secrets, CA and served leaf consistent.
pub(crate) struct Keeper {
    client: Client,
    webhook: CertificateSecret,
    bus: CertificateSecret,
    ca_targets: CaTargets,
    args: Args,
    readiness: Readiness,
    tls: watch::Sender<Option<RustlsConfig>>,
    /// The served certificates.
    current: Option<Certificates>,
}

// === impl Keeper ===

impl Keeper {
    /// `tls` becomes `Some` once there is a certificate to serve.
    pub(crate) fn new(
        client: Client,
        args: Args,
        readiness: Readiness,
        tls: watch::Sender<Option<RustlsConfig>>,
    ) -> Self {
        let secret = |name: &str, service: &str, ca_name, lifetime_days| {
            let purpose = Purpose {
                service: service.to_owned(),
                namespace: args.namespace.clone(),
                ca_name,
                lifetime_days,
            };
            CertificateSecret::new(client.clone(), name, purpose)
        };
        for condition in ["certificates", "webhook configuration", "conversion"] {
            readiness.set(condition, false);
        }
        Self {
            webhook: secret(&args.secret, &args.service, "podwright webhook CA", 365),
            // NATS reads its certificate only when it starts.
            bus: secret(
                &args.bus_secret,
                &args.bus_service,
                "podwright bus CA",
                3650,
            ),
            ca_targets: CaTargets::new(client.clone(), &args.webhook_configuration),
            client,
            args,
            readiness,
            tls,
            current: None,
        }
    }

    /// Runs until `end` is ready. Failures are logged and retried.
    pub(crate) async fn run(mut self, end: impl Future<Output = ()>) {
        let mut changes = self.changes().ready_chunks(CHANGES);
        let mut end = pin!(end);
        let [shortest, longest] = RETRY_AFTER;
        let mut backoff = Backoff::new(shortest, longest);
        let mut next_check = Instant::now();
        loop {
            tokio::select! {
                () = &mut end => return,
                Some(_) = changes.next() => {}
                () = sleep_until(next_check) => {}
            }
            let result = tokio::select! {
                () = &mut end => return,
                result = self.check() => result,
            };
            let pause = match result {
                Ok(pause) => {
                    backoff.reset();
                    pause
                }
                Err(error) => {
                    warn!(error = %ErrorChain(&error), "Failed to keep certificates; retrying");
                    backoff.next_delay()
                }
            };
            next_check = Instant::now() + pause;
        }
    }

    /// An item for each change of an object that [`Self::check`] reads.
    fn changes(&self) -> impl Stream<Item = ()> + use<> {
        let (client, args) = (|| self.client.clone(), &self.args);
        let secrets = || Guarded::<Secret>::namespaced(client(), &args.namespace);
        let configurations = Guarded::<MutatingWebhookConfiguration>::all(client());
        // Metadata only: the schemas of the CRD are large.
        let definitions = Guarded::<PartialObjectMeta<CustomResourceDefinition>>::all(client());
        let (configuration, what) = (&args.webhook_configuration, "webhook configuration");
        select_all([
            changes_of(secrets(), &args.secret, "secret"),
            changes_of(secrets(), &args.bus_secret, "secret"),
            changes_of(configurations, configuration, what),
            changes_of(definitions, CRD, "CRD"),
        ])
    }

    /// Checks both Secrets; a failure with one does not keep the other from being checked. Returns the pause until
    /// the next check.
    async fn check(&mut self) -> Result<Duration, KeepError> {
        let bus = self.bus.fetch_or_make().await;
        let pause = self.check_webhook().await?;
        Ok(bus?.map_or(RETRY_AFTER[0], |_| pause))
    }

    async fn check_webhook(&mut self) -> Result<Duration, KeepError> {
        let targets = self.ca_targets.fetch().await?;
        let Some(certificates) = self.webhook.fetch_or_make().await? else {
            return Ok(RETRY_AFTER[0]);
        };
        // The CA is written before the leaf is served: the new bundle trusts the old leaf, but the old bundle does
        // not trust the new leaf.
        let bundle = &certificates.bundle;
        let ca_targets = &self.ca_targets;
        if ca_targets.write_configuration(&targets, bundle).await? {
            self.readiness.set("webhook configuration", true);
        }
        let is_written = ca_targets.write_definition(&targets, bundle).await?;
        self.readiness.set("conversion", is_written);
        if self.current.as_ref() != Some(&certificates) {
            if self.current.is_some() {
                sleep(CA_KNOWN_AFTER).await;
            }
            self.serve(&certificates).await?;
            self.current = Some(certificates);
            self.readiness.set("certificates", true);
        }
        Ok(CHECK_EVERY)
    }

    async fn serve(&self, certificates: &Certificates) -> Result<(), std::io::Error> {
        let leaf = certificates.leaf.clone().into_bytes();
        let key = certificates.key.clone().into_bytes();
        let served = self.tls.borrow().clone();
        if let Some(tls) = served {
            tls.reload_from_pem(leaf, key).await?;
        } else {
            let tls = RustlsConfig::from_pem(leaf, key).await?;
            self.tls.send_replace(Some(tls));
        }
        info!(renew_at = %certificates.renew_at, "Serving certificates");
        Ok(())
    }
}

/// Objects of the API server, which may be unreadable one by one.
type Guarded<K> = Api<DeserializeGuard<K>>;

fn changes_of<K>(api: Guarded<K>, name: &str, what: &'static str) -> BoxStream<'static, ()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let by_name = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let events = api_client::watch(api, by_name, what);
    let changes = events.filter(|event| ready(!matches!(event, WatchEvent::ListBegun)));
    changes.map(drop).boxed()
}

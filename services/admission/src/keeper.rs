//! Keeping the certificates of the webhook and of the bus, and our CA in the webhook configuration and the CRD.
//!
//! Rights: in its namespace create secrets, and get, list, watch and update the two Secrets by name; get, list,
//! watch and patch the one MutatingWebhookConfiguration by name; `definition.rs` has its own. The watches are only
//! hints: each look reads all objects afresh, so that a replica whose watch is behind never writes an old CA over a
//! new one. A renewed leaf of the webhook is served without a restart; the bus's is mounted by NATS, its CA by
//! whoever connects there.

use std::{pin::pin, time::Duration};

use axum_server::tls_rustls::RustlsConfig;
use futures::{StreamExt, stream::select};
use k8s_openapi::{ByteString, api::admissionregistration::v1::MutatingWebhookConfiguration};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    runtime::{WatchStreamExt, watcher},
};
use model::error_chain::ErrorChain;
use serde_json::json;
use service_kit::{Readiness, backoff::Backoff};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};
use tracing::{info, warn};

use crate::{
    Args,
    certificates::{Certificates, Purpose},
    definition::{Definition, DefinitionError},
    shared::{Shared, SharedError},
};

/// How often the time of renewal is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

/// Bounds of the pause after a failure.
const RETRY_AFTER: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// Between a new CA in the configuration and the leaf that it signed: API servers have to hear of it first.
const CA_KNOWN_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error("failed to keep certificates")]
    Shared(#[from] SharedError),
    #[error("failed to read the webhook configuration {name}")]
    ReadConfiguration {
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("failed to write our CA into the webhook configuration {name}")]
    WriteConfiguration {
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    #[error("the certificates of the secret cannot be served")]
    Serve(#[source] std::io::Error),
}

/// Keeps Secrets, configuration and the served leaf in step.
pub(crate) struct Keeper {
    webhook: Shared,
    bus: Shared,
    configurations: Api<MutatingWebhookConfiguration>,
    definition: Definition,
    args: Args,
    readiness: Readiness,
    tls: watch::Sender<Option<RustlsConfig>>,
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
        let webhook = Purpose {
            service: args.service.clone(),
            namespace: args.namespace.clone(),
            ca_name: "podwright webhook CA",
            lifetime_days: 365,
        };
        let bus = Purpose {
            service: args.bus_service.clone(),
            namespace: args.namespace.clone(),
            ca_name: "podwright bus CA",
            // NATS reads its certificate only when it starts, and nobody tells it of a new one.
            lifetime_days: 3650,
        };
        readiness.set("certificates", false);
        readiness.set("webhook configuration", false);
        readiness.set("conversion", false);
        Self {
            webhook: Shared::new(client.clone(), &args.secret, webhook),
            bus: Shared::new(client.clone(), &args.bus_secret, bus),
            configurations: Api::all(client.clone()),
            definition: Definition::new(client),
            args,
            readiness,
            tls,
            current: None,
        }
    }

    /// Runs until `end` is ready. What fails is logged and tried again until it succeeds.
    pub(crate) async fn run(mut self, end: impl Future<Output = ()>) {
        let by_name =
            |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
        let watch = |shared: &Shared| {
            watcher(shared.secrets.clone(), by_name(&shared.name)).default_backoff()
        };
        let mut secrets = pin!(select(watch(&self.webhook), watch(&self.bus)));
        let configuration = by_name(&self.args.webhook_configuration);
        let configurations = watcher(self.configurations.clone(), configuration);
        let mut configurations = pin!(configurations.default_backoff());
        let mut definitions = pin!(self.definition.watch());
        let mut end = pin!(end);
        let [shortest, longest] = RETRY_AFTER;
        let mut backoff = Backoff::new(shortest, longest);
        let mut next_look = Instant::now();
        loop {
            let is_due = tokio::select! {
                () = &mut end => return,
                Some(event) = secrets.next() => is_change("secret", &event),
                Some(event) = configurations.next() => is_change("webhook configuration", &event),
                Some(event) = definitions.next() => is_change("CRD", &event),
                () = sleep_until(next_look) => true,
            };
            if !is_due {
                continue;
            }
            let result = tokio::select! {
                () = &mut end => return,
                result = self.look() => result,
            };
            let pause = match result {
                Ok(pause) => {
                    backoff.reset();
                    pause
                }
                Err(error) => {
                    warn!(error = %ErrorChain(&error), "Certificates are not in step, trying again");
                    backoff.next_delay()
                }
            };
            next_look = Instant::now() + pause;
        }
    }

    /// Looks at both Secrets; trouble with one does not keep from the other. Returns when to look again.
    async fn look(&mut self) -> Result<Duration, KeepError> {
        let bus = self.bus.fetch_or_make().await;
        let pause = self.look_at_webhook().await?;
        Ok(if bus?.is_some() {
            pause
        } else {
            RETRY_AFTER[0]
        })
    }

    /// Brings Secret, configuration, CRD and the served leaf into step; returns when to look again.
    async fn look_at_webhook(&mut self) -> Result<Duration, KeepError> {
        // First what the CA is written into: one that another replica writes after this read makes our patch a
        // conflict.
        let configuration = self.fetch_configuration().await?;
        let definition = self.definition.fetch().await?;
        let Some(certificates) = self.webhook.fetch_or_make().await? else {
            return Ok(RETRY_AFTER[0]);
        };
        // The CA goes first: the bundle trusts the old leaf too, the old bundle does not trust the new leaf.
        if let Some(configuration) = &configuration {
            self.write_ca(configuration, &certificates).await?;
        } else {
            let name = &self.args.webhook_configuration;
            warn!(
                configuration = name,
                "Webhook configuration is not there yet"
            );
        }
        let bundle = &certificates.bundle;
        let is_written = self
            .definition
            .write_ca(definition.as_ref(), bundle)
            .await?;
        self.readiness.set("conversion", is_written);
        if self.current.as_ref() != Some(&certificates) {
            if self.current.is_some() {
                sleep(CA_KNOWN_AFTER).await;
            }
            self.serve(&certificates).await?;
            self.current = Some(certificates);
            self.readiness.set("certificates", true);
        }
        Ok(LOOK_EVERY)
    }

    async fn fetch_configuration(&self) -> Result<Option<MutatingWebhookConfiguration>, KeepError> {
        let name = &self.args.webhook_configuration;
        let found = self.configurations.get_opt(name).await;
        found.map_err(|source| KeepError::ReadConfiguration {
            name: name.clone(),
            source: Box::new(source),
        })
    }

    async fn serve(&self, certificates: &Certificates) -> Result<(), KeepError> {
        let leaf = certificates.leaf.clone().into_bytes();
        let key = certificates.key.clone().into_bytes();
        let served = self.tls.borrow().clone();
        match served {
            Some(tls) => tls
                .reload_from_pem(leaf, key)
                .await
                .map_err(KeepError::Serve)?,
            None => {
                let tls = RustlsConfig::from_pem(leaf, key)
                    .await
                    .map_err(KeepError::Serve)?;
                self.tls.send_replace(Some(tls));
            }
        }
        info!(renew_at = %certificates.renew_at, "Serving certificates");
        Ok(())
    }

    /// Writes our CA wherever the configuration has another one.
    async fn write_ca(
        &self,
        configuration: &MutatingWebhookConfiguration,
        certificates: &Certificates,
    ) -> Result<(), KeepError> {
        let bundle = ByteString(certificates.bundle.clone().into_bytes());
        let webhooks = configuration.webhooks.iter().flatten();
        let stale =
            webhooks.filter(|webhook| webhook.client_config.ca_bundle.as_ref() != Some(&bundle));
        let stale: Vec<_> = stale
            .map(|webhook| json!({ "name": webhook.name, "clientConfig": { "caBundle": bundle } }))
            .collect();
        if !stale.is_empty() {
            let name = &self.args.webhook_configuration;
            let patch = Patch::Strategic(json!({
                "metadata": { "resourceVersion": configuration.metadata.resource_version },
                "webhooks": stale,
            }));
            let patched = self
                .configurations
                .patch(name, &PatchParams::default(), &patch)
                .await;
            patched.map_err(|source| KeepError::WriteConfiguration {
                name: name.clone(),
                source: Box::new(source),
            })?;
            info!(configuration = name, "Wrote our CA");
        }
        self.readiness.set("webhook configuration", true);
        Ok(())
    }
}

/// Whether a watch event says that there is something to look at.
fn is_change<K>(what: &'static str, event: &Result<watcher::Event<K>, watcher::Error>) -> bool {
    match event {
        Ok(watcher::Event::Apply(_) | watcher::Event::Delete(_) | watcher::Event::InitDone) => true,
        Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => false,
        Err(error) => {
            warn!(what, error = %ErrorChain(error), "Watch failed");
            false
        }
    }
}

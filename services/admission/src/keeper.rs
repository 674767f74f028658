//! Keeping the replicas' certificates in one Secret, and our CA in the webhook configuration and the CRD.
//!
//! Rights: in its namespace create secrets, and get, list, watch and update the one Secret by name; get, list,
//! watch and patch the one MutatingWebhookConfiguration by name; `definition.rs` has its own. A replica that comes
//! first makes the certificates, the others read them. The watches are only hints: each look reads all objects
//! afresh, so that a replica whose watch is behind never writes an old CA over a new one. A renewed leaf is served
//! without a restart.

use std::{collections::BTreeMap, pin::pin, time::Duration};

use axum_server::tls_rustls::RustlsConfig;
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::{
    ByteString,
    api::{admissionregistration::v1::MutatingWebhookConfiguration, core::v1::Secret},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::json;
use service_kit::{ErrorChain, Readiness, backoff::Backoff, clock};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};
use tracing::{info, warn};

use crate::{
    Args,
    certificates::{Certificates, MakeError, make},
    definition::{Definition, DefinitionError},
};

/// Annotation of the Secret: when the certificates have to be made anew.
const RENEW_AT: &str = "podwright.dev/renew-at";

/// How often the time of renewal is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

/// Bounds of the pause after a failure.
const RETRY_AFTER: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// Between a new CA in the configuration and the leaf that it signed: API servers have to hear of it first.
const CA_KNOWN_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error("failed to make certificates")]
    Make(#[from] MakeError),
    #[error("failed to read the {what} {name}")]
    Read {
        what: &'static str,
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("failed to write the secret {name}")]
    WriteSecret {
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

/// Keeps Secret, configuration and the served leaf in step.
pub(crate) struct Keeper {
    secrets: Api<Secret>,
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
        let secrets = Api::namespaced(client.clone(), &args.namespace);
        readiness.set("certificates", false);
        readiness.set("webhook configuration", false);
        readiness.set("conversion", false);
        Self {
            secrets,
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
        let secrets = watcher(self.secrets.clone(), by_name(&self.args.secret));
        let mut secrets = pin!(secrets.default_backoff());
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

    /// Brings Secret, configuration and the served leaf into step; returns when to look again.
    async fn look(&mut self) -> Result<Duration, KeepError> {
        // First what the CA is written into: one that another replica writes after this read makes our patch a conflict.
        let configuration = self.fetch_configuration().await?;
        let definition = self.definition.fetch().await?;
        let Some(secret) = self.fetch_secret().await? else {
            return self.make_secret(None).await;
        };
        let certificates = match read(&secret) {
            Some(certificates) if clock::now() < certificates.renew_at => certificates,
            Some(_) => {
                info!(secret = self.args.secret, "Certificates are renewed");
                return self.make_secret(Some(&secret)).await;
            }
            None => {
                warn!(
                    secret = self.args.secret,
                    "Secret holds no certificates, making new ones"
                );
                return self.make_secret(Some(&secret)).await;
            }
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

    async fn fetch_secret(&self) -> Result<Option<Secret>, KeepError> {
        let name = &self.args.secret;
        let found = self.secrets.get_opt(name).await;
        found.map_err(|source| KeepError::Read {
            what: "secret",
            name: name.clone(),
            source: Box::new(source),
        })
    }

    async fn fetch_configuration(&self) -> Result<Option<MutatingWebhookConfiguration>, KeepError> {
        let name = &self.args.webhook_configuration;
        let found = self.configurations.get_opt(name).await;
        found.map_err(|source| KeepError::Read {
            what: "webhook configuration",
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

    /// Makes certificates and stores them; whoever comes second reads the first's at the next look.
    async fn make_secret(&self, old: Option<&Secret>) -> Result<Duration, KeepError> {
        let old_ca = old.and_then(|old| text(old, "ca.crt"));
        let Args {
            service,
            namespace,
            secret: name,
            ..
        } = &self.args;
        let certificates = make(service, namespace, old_ca.as_deref(), clock::now())?;
        let secret = write(name, &certificates, old);
        let parameters = PostParams::default();
        let result = match old {
            Some(_) => self.secrets.replace(name, &parameters, &secret).await,
            None => self.secrets.create(&parameters, &secret).await,
        };
        match result {
            Ok(_) => Ok(RETRY_AFTER[0]),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                info!(secret = name, "Another replica was faster");
                Ok(RETRY_AFTER[0])
            }
            Err(source) => Err(KeepError::WriteSecret {
                name: name.clone(),
                source: Box::new(source),
            }),
        }
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
            warn!(what, %error, "Watch failed");
            false
        }
    }
}

fn text(secret: &Secret, key: &str) -> Option<String> {
    let bytes = secret.data.as_ref()?.get(key)?;
    String::from_utf8(bytes.0.clone()).ok()
}

fn read(secret: &Secret) -> Option<Certificates> {
    let renew_at: Timestamp = secret.annotations().get(RENEW_AT)?.parse().ok()?;
    Some(Certificates {
        bundle: text(secret, "ca.crt")?,
        leaf: text(secret, "tls.crt")?,
        key: text(secret, "tls.key")?,
        renew_at,
    })
}

fn write(name: &str, certificates: &Certificates, old: Option<&Secret>) -> Secret {
    let entry = |key: &str, pem: &str| (key.to_owned(), ByteString(pem.as_bytes().to_vec()));
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            resource_version: old.and_then(ResourceExt::resource_version),
            annotations: Some(BTreeMap::from([(
                RENEW_AT.to_owned(),
                certificates.renew_at.to_string(),
            )])),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([
            entry("ca.crt", &certificates.bundle),
            entry("tls.crt", &certificates.leaf),
            entry("tls.key", &certificates.key),
        ])),
        ..Secret::default()
    }
}

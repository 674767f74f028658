//! Keeping the replicas' certificates in one Secret, and our CA in the webhook configuration.
//!
//! Rights: in its namespace create secrets, and get, list, watch and patch the one Secret by name; get, list,
//! watch and patch the one MutatingWebhookConfiguration by name. Two watches; a replica that comes first makes the
//! certificates, the others read them. A renewed leaf is served without a restart.

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
use service_kit::{ErrorChain, Readiness, clock};
use tokio::{sync::watch, time::sleep};
use tracing::{info, warn};

use crate::{
    Args,
    certificates::{Certificates, MakeError, make},
};

/// Annotation of the Secret: when the certificates have to be made anew.
const RENEW_AT: &str = "podwright.dev/renew-at";

/// How often the time of renewal is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

/// The pause after a failed write.
const RETRY_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
enum KeepError {
    #[error("failed to make certificates")]
    Make(#[from] MakeError),
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
    #[error("the certificates of the secret cannot be served")]
    Serve(#[source] std::io::Error),
}

/// Keeps Secret, configuration and the served leaf in step.
pub(crate) struct Keeper {
    secrets: Api<Secret>,
    configurations: Api<MutatingWebhookConfiguration>,
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
        Self {
            secrets,
            configurations: Api::all(client),
            args,
            readiness,
            tls,
            current: None,
        }
    }

    /// Runs until `end` is ready. What fails is logged and tried again.
    pub(crate) async fn run(mut self, end: impl Future<Output = ()>) {
        let by_name =
            |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
        let secrets = watcher(self.secrets.clone(), by_name(&self.args.secret));
        let mut secrets = pin!(secrets.default_backoff());
        let configuration = by_name(&self.args.webhook_configuration);
        let configurations = watcher(self.configurations.clone(), configuration);
        let mut configurations = pin!(configurations.default_backoff());
        let mut end = pin!(end);
        let mut is_listed = false;
        loop {
            let result = tokio::select! {
                () = &mut end => return,
                Some(event) = secrets.next() => match event {
                    Ok(watcher::Event::Init) => { is_listed = false; Ok(()) }
                    Ok(watcher::Event::Apply(secret) | watcher::Event::InitApply(secret)) => {
                        is_listed = true;
                        self.on_secret(&secret).await
                    }
                    Ok(watcher::Event::InitDone) if is_listed => Ok(()),
                    Ok(watcher::Event::InitDone | watcher::Event::Delete(_)) => {
                        self.make_secret(None).await
                    }
                    Err(error) => { warn!(%error, "Secret watch failed"); Ok(()) }
                },
                Some(event) = configurations.next() => match event {
                    Ok(
                        watcher::Event::Apply(configuration)
                        | watcher::Event::InitApply(configuration),
                    ) => self.write_ca(&configuration).await,
                    Ok(_) => Ok(()),
                    Err(error) => { warn!(%error, "Webhook configuration watch failed"); Ok(()) }
                },
                () = sleep(LOOK_EVERY) => self.look_at_renewal().await,
            };
            if let Err(error) = result {
                warn!(error = %ErrorChain(&error), "Certificates are not in step, trying again");
                tokio::select! {
                    () = &mut end => return,
                    () = sleep(RETRY_AFTER) => self.try_again().await,
                }
            }
        }
    }

    /// Reads both objects again after a failure; another failure waits for the next event.
    async fn try_again(&mut self) {
        let again = async {
            match self.secrets.get_opt(&self.args.secret).await {
                Ok(Some(secret)) => self.on_secret(&secret).await,
                Ok(None) => self.make_secret(None).await,
                Err(source) => {
                    let name = self.args.secret.clone();
                    Err(KeepError::WriteSecret {
                        name,
                        source: Box::new(source),
                    })
                }
            }
        };
        if let Err(error) = again.await {
            warn!(error = %ErrorChain(&error), "Certificates are still not in step");
        }
    }

    async fn look_at_renewal(&mut self) -> Result<(), KeepError> {
        match self.secrets.get_opt(&self.args.secret).await {
            Ok(Some(secret)) => self.on_secret(&secret).await,
            Ok(None) => self.make_secret(None).await,
            Err(source) => {
                let name = self.args.secret.clone();
                Err(KeepError::WriteSecret {
                    name,
                    source: Box::new(source),
                })
            }
        }
    }

    async fn on_secret(&mut self, secret: &Secret) -> Result<(), KeepError> {
        let Some(certificates) = read(secret) else {
            warn!(
                secret = self.args.secret,
                "Secret holds no certificates, making new ones"
            );
            return self.make_secret(Some(secret)).await;
        };
        if clock::now() >= certificates.renew_at {
            info!(secret = self.args.secret, "Certificates are renewed");
            return self.make_secret(Some(secret)).await;
        }
        if self.current.as_ref() != Some(&certificates) {
            self.serve(&certificates).await?;
            self.current = Some(certificates);
            self.readiness.set("certificates", true);
        }
        let name = &self.args.webhook_configuration;
        match self.configurations.get_opt(name).await {
            Ok(Some(configuration)) => self.write_ca(&configuration).await,
            Ok(None) => {
                warn!(
                    configuration = name,
                    "Webhook configuration is not there yet"
                );
                Ok(())
            }
            Err(source) => Err(KeepError::WriteConfiguration {
                name: name.clone(),
                source: Box::new(source),
            }),
        }
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

    /// Makes certificates and stores them; who comes second reads the first's by its watch.
    async fn make_secret(&mut self, old: Option<&Secret>) -> Result<(), KeepError> {
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
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                info!(secret = name, "Another replica was faster");
                Ok(())
            }
            Err(source) => Err(KeepError::WriteSecret {
                name: name.clone(),
                source: Box::new(source),
            }),
        }
    }

    /// Writes our CA wherever the configuration has another one.
    async fn write_ca(
        &mut self,
        configuration: &MutatingWebhookConfiguration,
    ) -> Result<(), KeepError> {
        let Some(certificates) = &self.current else {
            return Ok(());
        };
        let bundle = ByteString(certificates.bundle.clone().into_bytes());
        let webhooks = configuration.webhooks.iter().flatten();
        let stale =
            webhooks.filter(|webhook| webhook.client_config.ca_bundle.as_ref() != Some(&bundle));
        let stale: Vec<_> = stale
            .map(|webhook| json!({ "name": webhook.name, "clientConfig": { "caBundle": bundle } }))
            .collect();
        if !stale.is_empty() {
            let name = &self.args.webhook_configuration;
            let patch = Patch::Strategic(json!({ "webhooks": stale }));
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

//! Certificates that the replicas share in a Secret.
//!
//! Owns the form of the Secret, the creation of its certificates and their renewal. The first replica makes the
//! certificates and the others read them; the resourceVersion of the Secret decides which replica was first.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, PostParams},
};
use service_kit::clock;
use tracing::{info, warn};

use crate::{
    call_error::{CallError, failed_to},
    certificates::{Certificates, MakeError, Purpose, make},
};

/// Annotation of the Secret: the time of renewal.
const RENEW_AT: &str = "podwright.dev/renew-at";

#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    #[error("failed to make certificates")]
    Make(#[from] MakeError),
    #[error(transparent)]
    Call(#[from] CallError),
}

pub(crate) struct CertificateSecret {
    secrets: Api<Secret>,
    name: String,
    purpose: Purpose,
}

// === impl CertificateSecret ===

impl CertificateSecret {
    pub(crate) fn new(client: Client, name: &str, purpose: Purpose) -> Self {
        Self {
            secrets: Api::namespaced(client, &purpose.namespace),
            name: name.to_owned(),
            purpose,
        }
    }

    /// Reads the certificates; `None` if new ones were stored, which the next call reads.
    pub(crate) async fn fetch_or_make(&self) -> Result<Option<Certificates>, SecretError> {
        let secret = &self.name;
        let stored = self.secrets.get_opt(secret).await;
        let stored = stored.map_err(failed_to("read", self.what()))?;
        match stored.as_ref().map(read) {
            Some(Some(certificates)) if clock::now() < certificates.renew_at => {
                return Ok(Some(certificates));
            }
            Some(Some(_)) => info!(secret, "Renewing certificates"),
            Some(None) => warn!(secret, "Secret holds no certificates; making new ones"),
            None => {}
        }
        self.store_new(stored.as_ref()).await?;
        Ok(None)
    }

    fn what(&self) -> String {
        format!("secret {}", self.name)
    }

    /// Stores new certificates, unless another replica stored its own first.
    async fn store_new(&self, old: Option<&Secret>) -> Result<(), SecretError> {
        let old_ca = old.and_then(|old| text(old, "ca.crt"));
        let certificates = make(&self.purpose, old_ca.as_deref(), clock::now())?;
        let secret = write(&self.name, &certificates, old);
        let parameters = PostParams::default();
        let result = match old {
            Some(_) => self.secrets.replace(&self.name, &parameters, &secret).await,
            None => self.secrets.create(&parameters, &secret).await,
        };
        if let Err(kube::Error::Api(status)) = &result
            && status.code == 409
        {
            info!(secret = self.name, "Another replica was faster");
            return Ok(());
        }
        result.map_err(failed_to("write", self.what()))?;
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
    let renew_at = (RENEW_AT.to_owned(), certificates.renew_at.to_string());
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            resource_version: old.and_then(ResourceExt::resource_version),
            annotations: Some(BTreeMap::from([renew_at])),
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

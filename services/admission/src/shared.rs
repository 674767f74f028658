//! Certificates that the replicas share in one Secret.
//!
//! Owns the Secret's form, and making and renewing what it holds. A replica that comes first makes the certificates,
//! the others read them; the Secret's version decides who was first. Who is told of them is not decided here.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, PostParams},
};
use service_kit::clock;
use tracing::{info, warn};

use crate::certificates::{Certificates, MakeError, Purpose, make};

/// Annotation of the Secret: when the certificates have to be made anew.
const RENEW_AT: &str = "podwright.dev/renew-at";

#[derive(Debug, thiserror::Error)]
pub(crate) enum SharedError {
    #[error("failed to make certificates")]
    Make(#[from] MakeError),
    #[error("failed to read the secret {name}")]
    Read {
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("failed to write the secret {name}")]
    Write {
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
}

/// One Secret and what its certificates are for.
pub(crate) struct Shared {
    pub(crate) secrets: Api<Secret>,
    pub(crate) name: String,
    purpose: Purpose,
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(client: Client, name: &str, purpose: Purpose) -> Self {
        Self {
            secrets: Api::namespaced(client, &purpose.namespace),
            name: name.to_owned(),
            purpose,
        }
    }

    /// The certificates in force; `None` when new ones were made, which the next look finds.
    pub(crate) async fn fetch_or_make(&self) -> Result<Option<Certificates>, SharedError> {
        let secret = self.fetch().await?;
        match secret.as_ref().map(read) {
            Some(Some(certificates)) if clock::now() < certificates.renew_at => {
                return Ok(Some(certificates));
            }
            Some(Some(_)) => info!(secret = self.name, "Certificates are renewed"),
            Some(None) => warn!(
                secret = self.name,
                "Secret holds no certificates, making new ones"
            ),
            None => {}
        }
        self.store_new(secret.as_ref()).await?;
        Ok(None)
    }

    async fn fetch(&self) -> Result<Option<Secret>, SharedError> {
        let found = self.secrets.get_opt(&self.name).await;
        found.map_err(|source| SharedError::Read {
            name: self.name.clone(),
            source: Box::new(source),
        })
    }

    /// Makes certificates and stores them; whoever comes second reads the first's at the next look.
    async fn store_new(&self, old: Option<&Secret>) -> Result<(), SharedError> {
        let old_ca = old.and_then(|old| text(old, "ca.crt"));
        let certificates = make(&self.purpose, old_ca.as_deref(), clock::now())?;
        let secret = write(&self.name, &certificates, old);
        let parameters = PostParams::default();
        let result = match old {
            Some(_) => self.secrets.replace(&self.name, &parameters, &secret).await,
            None => self.secrets.create(&parameters, &secret).await,
        };
        match result {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                info!(secret = self.name, "Another replica was faster");
                Ok(())
            }
            Err(source) => Err(SharedError::Write {
                name: self.name.clone(),
                source: Box::new(source),
            }),
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

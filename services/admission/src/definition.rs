//! Our CA in the CRD of requests, so that the API server can have them converted.
//!
//! Rights: get, list, watch and patch that one CustomResourceDefinition by name. When to write is `keeper.rs`'.

use futures::Stream;
use k8s_openapi::{
    ByteString, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{PartialObjectMeta, Patch, PatchParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::json;
use tracing::{info, warn};

/// The CRD's name is made of the kind's plural and its group.
const NAME: &str = "containerrecreaterequests.apps.kruise.io";

/// Why the CRD does not have our CA.
#[derive(Debug, thiserror::Error)]
#[error("failed to {step} the CRD {NAME}")]
pub(crate) struct DefinitionError {
    step: &'static str,
    #[source]
    source: Box<kube::Error>,
}

/// The one CRD.
pub(crate) struct Definition {
    definitions: Api<CustomResourceDefinition>,
    /// Without its schemas, which are most of it.
    metadata: Api<Metadata>,
}

type Metadata = PartialObjectMeta<CustomResourceDefinition>;

// === impl Definition ===

impl Definition {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            definitions: Api::all(client.clone()),
            metadata: Api::all(client),
        }
    }

    /// That it changes; what it is then has to be fetched.
    pub(crate) fn watch(
        &self,
    ) -> impl Stream<Item = Result<watcher::Event<Metadata>, watcher::Error>> + Send + use<> {
        let by_name = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
        watcher(self.metadata.clone(), by_name).default_backoff()
    }

    /// Fetches the CRD, if it is installed already.
    pub(crate) async fn fetch(&self) -> Result<Option<CustomResourceDefinition>, DefinitionError> {
        let found = self.definitions.get_opt(NAME).await;
        found.map_err(failed("read"))
    }

    /// Writes our CA in if another one is there. `definition` is of before the CA was read: if another replica
    /// wrote a newer one since, the write fails instead of undoing it. False: there is nothing to write into yet.
    pub(crate) async fn write_ca(
        &self,
        definition: Option<&CustomResourceDefinition>,
        bundle: &str,
    ) -> Result<bool, DefinitionError> {
        let Some(definition) = definition else {
            warn!(definition = NAME, "CRD is not there yet");
            return Ok(false);
        };
        let conversion = definition.spec.conversion.as_ref();
        let webhook = conversion.and_then(|conversion| conversion.webhook.as_ref());
        let Some(client) = webhook.and_then(|webhook| webhook.client_config.as_ref()) else {
            warn!(
                definition = NAME,
                "CRD converts without us: v1alpha1 and v1beta1 do not show the same"
            );
            return Ok(true);
        };
        let bundle = ByteString(bundle.as_bytes().to_vec());
        if client.ca_bundle.as_ref() == Some(&bundle) {
            return Ok(true);
        }
        let client_config = json!({ "caBundle": bundle });
        let patch = Patch::Merge(json!({
            "metadata": { "resourceVersion": definition.metadata.resource_version },
            "spec": { "conversion": { "webhook": { "clientConfig": client_config } } },
        }));
        let patched = self
            .definitions
            .patch(NAME, &PatchParams::default(), &patch)
            .await;
        patched.map_err(failed("write our CA into"))?;
        info!(definition = NAME, "Wrote our CA");
        Ok(true)
    }
}

fn failed(step: &'static str) -> impl FnOnce(kube::Error) -> DefinitionError {
    move |source| DefinitionError {
        step,
        source: Box::new(source),
    }
}

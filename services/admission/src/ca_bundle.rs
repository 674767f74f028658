//! Our CA in the two objects that make the API server call us: the MutatingWebhookConfiguration, and the CRD of
//! requests, which are converted by a webhook.
//!
//! Owns reading and patching them; `keeper.rs` decides when.
//!
//! Rights: get, list, watch and patch these objects by name.

use std::fmt::Debug;

use k8s_openapi::{
    ByteString, api::admissionregistration::v1::MutatingWebhookConfiguration,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    serde::de::DeserializeOwned,
};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::call_error::{CallError, failed_to};

/// Name of the CRD: the kind's plural and its group.
pub(crate) const CRD: &str = "containerrecreaterequests.apps.kruise.io";

/// The two objects at the API server.
pub(crate) struct CaTargets {
    configurations: Api<MutatingWebhookConfiguration>,
    definitions: Api<CustomResourceDefinition>,
    /// Name of the webhook configuration.
    name: String,
}

/// The two objects as they were read; `None` where one does not exist yet.
///
/// They have to be read before the CA: if another replica writes a newer CA after the read, our patch is a conflict.
pub(crate) struct Targets {
    configuration: Option<MutatingWebhookConfiguration>,
    definition: Option<CustomResourceDefinition>,
}

// === impl CaTargets ===

impl CaTargets {
    pub(crate) fn new(client: Client, name: &str) -> Self {
        Self {
            configurations: Api::all(client.clone()),
            definitions: Api::all(client),
            name: name.to_owned(),
        }
    }

    pub(crate) async fn fetch(&self) -> Result<Targets, CallError> {
        let configuration = self.configurations.get_opt(&self.name).await;
        let definition = self.definitions.get_opt(CRD).await;
        let name = format!("webhook configuration {}", self.name);
        Ok(Targets {
            configuration: configuration.map_err(failed_to("read", name))?,
            definition: definition.map_err(failed_to("read", format!("CRD {CRD}")))?,
        })
    }

    /// Writes the CA into the webhook configuration if it has another one. False if it does not exist.
    pub(crate) async fn write_configuration(
        &self,
        targets: &Targets,
        bundle: &str,
    ) -> Result<bool, CallError> {
        let Some(configuration) = &targets.configuration else {
            let configuration = &self.name;
            warn!(configuration, "Webhook configuration does not exist yet");
            return Ok(false);
        };
        let bundle = ByteString(bundle.as_bytes().to_vec());
        let webhooks = configuration.webhooks.iter().flatten();
        let stale: Vec<_> = webhooks
            .filter(|webhook| webhook.client_config.ca_bundle.as_ref() != Some(&bundle))
            .map(|webhook| json!({ "name": webhook.name, "clientConfig": { "caBundle": bundle } }))
            .collect();
        if !stale.is_empty() {
            let patch = Patch::Strategic(json!({
                "metadata": { "resourceVersion": configuration.resource_version() },
                "webhooks": stale,
            }));
            let what = format!("webhook configuration {}", self.name);
            write(&self.configurations, &self.name, what, &patch).await?;
        }
        Ok(true)
    }

    /// Writes the CA into the CRD if it has another one. False if the CRD does not exist.
    pub(crate) async fn write_definition(
        &self,
        targets: &Targets,
        bundle: &str,
    ) -> Result<bool, CallError> {
        let Some(definition) = &targets.definition else {
            warn!(definition = CRD, "CRD does not exist yet");
            return Ok(false);
        };
        let conversion = definition.spec.conversion.as_ref();
        let webhook = conversion.and_then(|conversion| conversion.webhook.as_ref());
        let Some(client) = webhook.and_then(|webhook| webhook.client_config.as_ref()) else {
            let consequence = "v1alpha1 and v1beta1 do not show the same";
            warn!(
                definition = CRD,
                "CRD does not use our conversion: {consequence}"
            );
            return Ok(true);
        };
        let bundle = ByteString(bundle.as_bytes().to_vec());
        if client.ca_bundle.as_ref() != Some(&bundle) {
            let client_config = json!({ "caBundle": bundle });
            let patch = Patch::Merge(json!({
                "metadata": { "resourceVersion": definition.resource_version() },
                "spec": { "conversion": { "webhook": { "clientConfig": client_config } } },
            }));
            write(&self.definitions, CRD, format!("CRD {CRD}"), &patch).await?;
        }
        Ok(true)
    }
}

async fn write<K: Clone + Debug + DeserializeOwned>(
    api: &Api<K>,
    name: &str,
    what: String,
    patch: &Patch<Value>,
) -> Result<(), CallError> {
    let patched = api.patch(name, &PatchParams::default(), patch).await;
    patched.map_err(failed_to("write our CA into", &*what))?;
    info!(object = what, "Wrote our CA");
    Ok(())
}

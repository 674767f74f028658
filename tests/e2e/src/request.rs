//! ContainerRecreateRequests of the tests.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_api::crd::{ContainerRecreateRequest, ContainerRecreateRequestState};
use kube::{
    Api, Error, ResourceExt,
    api::{ApiResource, DynamicObject, PostParams},
    core::Status,
};
use serde_json::{Value, json};

use crate::{
    space::Space,
    wait::{Look, PATIENCE, wait_for},
};

/// A creation that was refused, and what was said.
pub type Refused = Box<Status>;

// === impl Space: requests ===

impl Space {
    pub fn requests(&self) -> Api<ContainerRecreateRequest> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Requests as whatever was written: also what the types do not allow.
    pub fn raw_requests(&self) -> Api<DynamicObject> {
        let kind = ApiResource::erase::<ContainerRecreateRequest>(&());
        Api::namespaced_with(self.client.clone(), &self.name, &kind)
    }

    /// Requests as a version of the API has them, such as `v1alpha1`.
    pub fn requests_as(&self, version: &str) -> Api<DynamicObject> {
        let mut kind = ApiResource::erase::<ContainerRecreateRequest>(&());
        kind.api_version = format!("{}/{version}", kind.group);
        version.clone_into(&mut kind.version);
        Api::namespaced_with(self.client.clone(), &self.name, &kind)
    }

    /// Creates a request of that spec.
    pub async fn request(&self, name: &str, spec: Value) -> Result<ContainerRecreateRequest> {
        let created = self.try_request(name, spec).await?;
        created
            .map_err(anyhow::Error::new)
            .with_context(|| format!("request {name} was refused"))
    }

    /// Creates a request that recreates containers, in order, with nothing else said.
    pub async fn recreate(
        &self,
        name: &str,
        pod: &str,
        containers: &[&str],
    ) -> Result<ContainerRecreateRequest> {
        self.request(name, spec(pod, containers)).await
    }

    /// Creates a request, or says how it was refused.
    pub async fn try_request(
        &self,
        name: &str,
        spec: Value,
    ) -> Result<Result<ContainerRecreateRequest, Refused>> {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "ContainerRecreateRequest",
            "metadata": { "name": name },
            "spec": spec,
        }))?;
        match self
            .raw_requests()
            .create(&PostParams::default(), &object)
            .await
        {
            Ok(created) => Ok(Ok(serde_json::from_value(serde_json::to_value(created)?)?)),
            Err(Error::Api(status)) => Ok(Err(status)),
            Err(error) => Err(error).context("failed to reach the API server"),
        }
    }

    /// Waits until a request has ended and its label is off.
    pub async fn wait_completed(&self, name: &str) -> Result<ContainerRecreateRequest> {
        self.wait_completed_within(name, PATIENCE).await
    }

    pub async fn wait_completed_within(
        &self,
        name: &str,
        within: Duration,
    ) -> Result<ContainerRecreateRequest> {
        self.wait_request(name, "to be Completed, its label off", within, |request| {
            is_completed(request) && !request.labels().contains_key(model::labels::CRR_ACTIVE)
        })
        .await
    }

    /// Waits until a request is as wanted.
    pub async fn wait_request(
        &self,
        name: &str,
        wanted: &str,
        within: Duration,
        is_so: impl Fn(&ContainerRecreateRequest) -> bool,
    ) -> Result<ContainerRecreateRequest> {
        wait_for(&format!("request {name} {wanted}"), within, async || {
            let request = self.requests().get(name).await?;
            Ok(if is_so(&request) {
                Look::Found(request)
            } else {
                Look::NotYet(format!("{:?} {:?}", request.labels(), request.status))
            })
        })
        .await
    }
}

/// The spec that names a pod and containers.
pub fn spec(pod: &str, containers: &[&str]) -> Value {
    let containers: Vec<_> = containers
        .iter()
        .map(|name| json!({ "name": name }))
        .collect();
    json!({ "podName": pod, "containers": containers })
}

pub fn is_completed(request: &ContainerRecreateRequest) -> bool {
    phase_of(request) == "Completed"
}

/// The request's phase; empty before the first status.
pub fn phase_of(request: &ContainerRecreateRequest) -> &str {
    request
        .status
        .as_ref()
        .map_or("", |status| status.phase.as_str())
}

/// The state of a container in a request.
pub fn state_of<'a>(
    request: &'a ContainerRecreateRequest,
    container: &str,
) -> Option<&'a ContainerRecreateRequestState> {
    let states = &request.status.as_ref()?.container_recreate_states;
    states.iter().find(|state| state.name == container)
}

//! The only module that talks to the API server, and to Jaeger.

mod jaeger;
mod story;

mod watch;
mod workload;

use std::path::Path;

use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams},
};

pub(crate) use self::jaeger::Jaeger;
pub(crate) use self::watch::News;
use crate::failure::Failure;

/// Requests, as rights name them.
const REQUESTS: &str = "containerrecreaterequests.apps.kruise.io";

/// The API server, and the namespace that commands are about.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    pub(crate) namespace: String,
}

// === impl Cluster ===

impl Cluster {
    /// Nothing is sent yet.
    pub(crate) async fn connect(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
        namespace: Option<&str>,
    ) -> Result<Self, Failure> {
        let client = api_client::named(kubeconfig, context).await;
        let client =
            client.map_err(|error| Failure::unreachable("reading the kubeconfig", &error))?;
        let namespace = namespace.unwrap_or(client.default_namespace()).to_owned();
        Ok(Self { client, namespace })
    }

    fn requests(&self) -> Api<ContainerRecreateRequest> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) async fn fetch_pod(&self, name: &str) -> Result<Pod, Failure> {
        let pod = self.pods().get(name).await;
        pod.map_err(|error| Failure::new(format!("reading pod {name}"), error))
    }

    /// Creates a request, or has the server only check it.
    pub(crate) async fn create(
        &self,
        request: &ContainerRecreateRequest,
        dry_run: bool,
    ) -> Result<ContainerRecreateRequest, Failure> {
        let how = PostParams {
            dry_run,
            field_manager: Some("kubectl-crr".to_owned()),
        };
        let created = self.requests().create(&how, request).await;
        let pod = &request.spec.pod_name;
        created.map_err(|error| Failure::new(format!("the restart of pod {pod}"), error))
    }

    pub(crate) async fn fetch_request(
        &self,
        name: &str,
    ) -> Result<ContainerRecreateRequest, Failure> {
        let request = self.requests().get(name).await;
        request.map_err(|error| Failure::new(format!("reading request {name}"), error))
    }

    /// The events about a request, and those of its pod that it caused: their names have its uid.
    pub(crate) async fn fetch_events(
        &self,
        request: &ContainerRecreateRequest,
    ) -> Result<Vec<Event>, Failure> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let list = events.list(&ListParams::default()).await;
        let list = list.map_err(|error| Failure::new("listing the events", error))?;
        let ours = format!("crr-{}-", request.uid().unwrap_or_default());
        let all = list.items.into_iter();
        Ok(all
            .filter(|event| event.name_any().starts_with(&ours))
            .collect())
    }

    pub(crate) async fn fetch_requests(
        &self,
        in_all_namespaces: bool,
        selector: Option<&str>,
    ) -> Result<Vec<ContainerRecreateRequest>, Failure> {
        let requests = if in_all_namespaces {
            Api::all(self.client.clone())
        } else {
            self.requests()
        };
        let which = selector.map_or_else(ListParams::default, |labels| {
            ListParams::default().labels(labels)
        });
        let list = requests.list(&which).await;
        Ok(list
            .map_err(|error| Failure::new("listing the requests", error))?
            .items)
    }
}

//! ContainerRecreateRequest, `apps.kruise.io/v1beta1`: the types that the CRD is generated from.
//!
//! Owns the schema; the comments on fields are what `kubectl explain` prints. Field names and meanings are
//! OpenKruise's. Rules that a schema cannot say are `admission-rules`'. What v1alpha1 has otherwise is in
//! `manifest.rs`, and the way between the two in `versions.rs`: no service reads or writes v1alpha1.

mod manifest;

use k8s_openapi::{
    api::core::v1::{ContainerPort, LifecycleHandler},
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use manifest::{definition, manifest};

/// ContainerRecreateRequest asks to recreate one or more containers of a running pod in place:
/// each is stopped on its node, and the kubelet starts a new one. The pod, its volumes and its other
/// containers stay; what was written into the container's root file system is lost.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "apps.kruise.io",
    version = "v1beta1",
    kind = "ContainerRecreateRequest",
    plural = "containerrecreaterequests",
    singular = "containerrecreaterequest",
    shortname = "crr",
    namespaced,
    status = "ContainerRecreateRequestStatus",
    derive = "PartialEq",
    doc = "Asks to recreate containers of a running pod in place.",
    printcolumn = r#"{"name":"Phase","type":"string","description":"Phase of this request.","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Pod","type":"string","description":"Pod of this request.","jsonPath":".spec.podName"}"#,
    printcolumn = r#"{"name":"Node","type":"string","description":"Node of the pod.","jsonPath":".metadata.labels.crr\\.apps\\.kruise\\.io/node-name"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecreateRequestSpec {
    /// The pod, in the namespace of this request.
    pub pod_name: String,
    /// The containers to recreate, in this order.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub containers: Vec<ContainerRecreateRequestContainer>,
    /// How the containers are recreated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<ContainerRecreateRequestStrategy>,
    /// Seconds after this request's creation at which it ends, done or not. At least 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub active_deadline_seconds: Option<i64>,
    /// Seconds after completion at which this request is deleted. Without it, it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
}

/// One container to recreate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecreateRequestContainer {
    /// The container's name in the pod.
    pub name: String,
    /// Read-only: the container's preStop hook, copied from the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pre_stop: Option<LifecycleHandler>,
    /// Read-only: the container's ports, copied from the pod where the hook names one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ContainerPort>,
    /// Read-only: the instance that was running when this request was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_context: Option<ContainerRecreateRequestContainerContext>,
}

/// The instance that was running when the request was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecreateRequestContainerContext {
    /// The container's id, such as containerd://…
    #[serde(rename = "containerID")]
    pub container_id: String,
    /// The container's restart count.
    pub restart_count: i32,
}

/// How the containers are recreated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecreateRequestStrategy {
    /// What one container's failure does: Fail ends the request, Ignore goes on. Defaults to Fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("enum" = ["Fail", "Ignore"]))]
    pub failure_policy: Option<String>,
    /// Begin the next container only when the one before it is up again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered_recreate: Option<bool>,
    /// Stop each container once, even when it was restarted since this request was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_recreate: Option<bool>,
    /// Seconds for the preStop hook and the stop together. Defaults to the pod's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub termination_grace_period_seconds: Option<i64>,
    /// Seconds to keep the pod not ready before its first container is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub unready_grace_period_seconds: Option<i64>,
    /// Seconds that the new container has to be up before it counts as recreated. Defaults to 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_started_seconds: Option<i32>,
}

/// What has become of the request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecreateRequestStatus {
    /// Pending, Recreating or Completed. Completed does not mean success: see each container's phase.
    // OpenKruise declares Succeeded and Failed and never uses them. The phase is empty before the first status, and in
    // a status that conversion makes for annotations of v1alpha1.
    #[schemars(extend("enum" = ["", "Pending", "Recreating", "Completed", "Succeeded", "Failed"]))]
    pub phase: String,
    /// When the request was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Why the request waits, or ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The state of each container.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub container_recreate_states: Vec<ContainerRecreateRequestState>,
    /// What the pod's status says of the new containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub container_status_snapshot: Vec<ContainerRecreateRequestContainerStatus>,
    /// What is known of the request, for kubectl wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The state of one container of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecreateRequestState {
    /// The container's name.
    pub name: String,
    /// Pending, Recreating, Succeeded or Failed.
    #[schemars(extend("enum" = ["Pending", "Recreating", "Succeeded", "Failed"]))]
    pub phase: String,
    /// Why it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether this request stopped the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_killed: Option<bool>,
}

/// A new container as the pod's status shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecreateRequestContainerStatus {
    /// The container's name.
    pub name: String,
    /// Whether it is ready.
    #[serde(default)]
    pub ready: bool,
    /// Its restart count.
    #[serde(default)]
    pub restart_count: i32,
    /// Its id, such as containerd://…
    #[serde(default, rename = "containerID")]
    pub container_id: String,
}

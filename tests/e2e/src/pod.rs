//! Pods of the tests: containers that live until they are told to end, and share a volume.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

use crate::{
    kubectl::kubectl,
    space::Space,
    wait::{Look, PATIENCE, wait_for},
};

/// A file that all containers of a pod see: what they write there outlives them.
pub const SHARED: &str = "/shared/log";

/// Ends at once when asked to.
const LIVE: &str = "trap 'exit 0' TERM; touch /shared/log; tail -f /dev/null & wait";

/// A pod to be.
#[derive(Clone, Debug)]
pub struct PodPlan {
    name: String,
    containers: Vec<Value>,
    init_containers: Vec<Value>,
    more: Value,
}

/// One container as pod status shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    pub container_id: String,
    pub restart_count: i32,
    pub is_ready: bool,
}

// === impl PodPlan ===

impl PodPlan {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            containers: Vec::new(),
            init_containers: Vec::new(),
            more: json!({}),
        }
    }

    pub fn container(mut self, name: &str) -> Self {
        self.containers.push(container(name));
        self
    }

    /// A container that runs that shell command and ends with it.
    pub fn container_running(mut self, name: &str, command: &str) -> Self {
        let mut container = container(name);
        container["command"] = json!(["sh", "-c", command]);
        self.containers.push(container);
        self
    }

    /// A container whose preStop hook runs that shell command in it.
    pub fn container_with_hook(mut self, name: &str, command: &str) -> Self {
        let mut container = container(name);
        container["lifecycle"] =
            json!({ "preStop": { "exec": { "command": ["sh", "-c", command] } } });
        self.containers.push(container);
        self
    }

    /// An init container that runs that shell command and ends with it.
    pub fn init_container(mut self, name: &str, command: &str) -> Self {
        let mut container = container(name);
        container["command"] = json!(["sh", "-c", command]);
        self.init_containers.push(container);
        self
    }

    /// A native sidecar whose preStop hook runs that shell command in it.
    pub fn sidecar_with_hook(mut self, name: &str, command: &str) -> Self {
        let mut container = container(name);
        container["restartPolicy"] = json!("Always");
        container["lifecycle"] =
            json!({ "preStop": { "exec": { "command": ["sh", "-c", command] } } });
        self.init_containers.push(container);
        self
    }

    /// Changes the container that was added last.
    pub fn changed(mut self, change: impl FnOnce(&mut Value)) -> Self {
        if let Some(container) = self.containers.last_mut() {
            change(container);
        }
        self
    }

    /// A field of the pod's spec.
    pub fn with(mut self, field: &str, value: Value) -> Self {
        self.more[field] = value;
        self
    }

    /// The pod as a manifest for kubectl.
    pub fn manifest(&self) -> Value {
        let mut spec = json!({
            "containers": self.containers,
            "initContainers": self.init_containers,
            "terminationGracePeriodSeconds": 30,
            "automountServiceAccountToken": false,
            "volumes": [{ "name": "shared", "emptyDir": {} }],
        });
        for (field, value) in self.more.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": self.name }, "spec": spec })
    }
}

fn container(name: &str) -> Value {
    json!({
        "name": name,
        "image": "busybox",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", LIVE],
        "volumeMounts": [{ "name": "shared", "mountPath": "/shared" }],
    })
}

// === impl Space: pods ===

impl Space {
    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Creates a pod and waits until all its containers are ready.
    pub async fn start(&self, plan: &PodPlan) -> Result<Pod> {
        self.create_pod(plan).await?;
        self.wait_ready(&plan.name).await
    }

    /// Creates a pod and waits for nothing.
    pub async fn create_pod(&self, plan: &PodPlan) -> Result<Pod> {
        let pod: Pod = serde_json::from_value(plan.manifest())?;
        let created = self.pods().create(&PostParams::default(), &pod).await;
        created.with_context(|| format!("failed to create pod {}", plan.name))
    }

    pub async fn wait_ready(&self, pod: &str) -> Result<Pod> {
        wait_for(&format!("pod {pod} to be ready"), PATIENCE, async || {
            let pod = self.pods().get(pod).await?;
            let wanted = pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
            let ready = statuses(&pod).iter().filter(|status| status.ready).count();
            Ok(if ready == wanted {
                Look::Found(pod)
            } else {
                Look::NotYet(format!("{ready} of {wanted} containers ready"))
            })
        })
        .await
    }

    /// What pod status says of a container now.
    pub async fn instance(&self, pod: &str, container: &str) -> Result<Instance> {
        let pod = self.pods().get(pod).await?;
        Instance::of(&pod, container)
    }

    /// Waits until a container is up again as another instance.
    pub async fn wait_replaced(
        &self,
        pod: &str,
        container: &str,
        old: &Instance,
    ) -> Result<Instance> {
        let what = format!("container {container} to be another instance");
        wait_for(&what, PATIENCE, async || {
            let now = self.instance(pod, container).await?;
            Ok(if now.container_id != old.container_id && now.is_ready {
                Look::Found(now)
            } else {
                Look::NotYet(format!("{now:?}"))
            })
        })
        .await
    }

    /// Waits until a pod is in that phase.
    pub async fn wait_phase(&self, pod: &str, phase: &str) -> Result<()> {
        wait_for(&format!("pod {pod} to be {phase}"), PATIENCE, async || {
            let status = self.pods().get(pod).await?.status;
            let now = status.and_then(|status| status.phase).unwrap_or_default();
            Ok(Look::is(now == phase, now))
        })
        .await
    }

    /// What the pod's containers have written into their shared file, read in one of them.
    pub async fn log(&self, pod: &str, container: &str) -> Result<String> {
        let exec = ["-n", &self.name, "exec", pod, "-c", container, "--"];
        let read = kubectl(&[&exec[..], &["cat", SHARED]].concat(), "").await;
        read.with_context(|| format!("failed to read {SHARED} in {container}"))
    }

    /// How often a line stands in the shared file.
    pub async fn count_lines(&self, pod: &str, container: &str, line: &str) -> Result<usize> {
        let log = self.log(pod, container).await?;
        Ok(log.lines().filter(|printed| *printed == line).count())
    }

    /// Waits until a line stands in the shared file.
    pub async fn wait_line(&self, pod: &str, container: &str, line: &str) -> Result<()> {
        wait_for(&format!("the line {line:?}"), PATIENCE, async || {
            let count = self.count_lines(pod, container, line).await?;
            Ok(Look::is(count > 0, "it is not there"))
        })
        .await
    }
}

// === impl Instance ===

impl Instance {
    pub fn of(pod: &Pod, container: &str) -> Result<Self> {
        let init_statuses = pod
            .status
            .as_ref()
            .and_then(|status| status.init_container_statuses.as_deref());
        let mut all = statuses(pod)
            .iter()
            .chain(init_statuses.unwrap_or_default());
        let status = all.find(|status| status.name == container);
        let status = status.with_context(|| format!("pod status has no container {container}"))?;
        Ok(Self {
            container_id: status.container_id.clone().unwrap_or_default(),
            restart_count: status.restart_count,
            is_ready: status.ready,
        })
    }

    /// The id as the runtime spells it.
    pub fn runtime_id(&self) -> &str {
        let id = &self.container_id;
        id.split_once("://").map_or(id, |(_, id)| id)
    }
}

pub(crate) fn statuses(pod: &Pod) -> &[ContainerStatus] {
    let statuses = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_deref());
    statuses.unwrap_or_default()
}

//! Pods whose containers start level by level, and how to see that they did.
//!
//! Each container writes its name into the shared file as the first thing it does: the file is the order of their starts,
//! finer than the whole seconds of the kubelet's `startedAt`.

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use model::{labels, launch::PRIORITY_VARIABLE};
use serde_json::{Value, json};

use crate::{
    pod::{PodPlan, statuses},
    space::Space,
    wait::{Look, PATIENCE, wait_for},
};

/// Writes the container's name, and ends at once when asked to.
const BEGIN: &str = "echo $NAME >> /shared/log; trap 'exit 0' TERM;";
const LIVE: &str = "tail -f /dev/null & wait";

/// A pod with launch priorities to be.
#[derive(Clone, Debug)]
pub struct Ordered {
    plan: PodPlan,
    annotations: Value,
}

// === impl Ordered ===

impl Ordered {
    pub fn new(name: &str) -> Self {
        Self {
            plan: PodPlan::new(name),
            annotations: json!({}),
        }
    }

    /// In the order of the pod.
    pub fn by_place(mut self) -> Self {
        self.annotations = json!({ labels::LAUNCH_PRIORITY: labels::LAUNCH_PRIORITY_ORDERED });
        self
    }

    /// A container that is up as soon as it has started.
    pub fn container(self, name: &str, priority: Option<&str>) -> Self {
        self.add(name, priority, LIVE)
    }

    /// A container that is ready when the file `/shared/up-<name>` is there.
    pub fn probed(self, name: &str, priority: Option<&str>) -> Self {
        let added = self.add(name, priority, LIVE);
        added.changed(|container| {
            let command = ["test", "-f", &format!("/shared/up-{name}")];
            container["readinessProbe"] =
                json!({ "exec": { "command": command }, "periodSeconds": 1 });
        })
    }

    /// A probed container whose first instance crashes.
    pub fn crashing_once(self, name: &str, priority: Option<&str>) -> Self {
        let crash = "test -f /shared/crashed || { touch /shared/crashed; exit 1; };";
        self.probed(name, priority).changed(|container| {
            container["command"] = json!(["sh", "-c", format!("{BEGIN} {crash} {LIVE}")]);
        })
    }

    fn add(mut self, name: &str, priority: Option<&str>, then: &str) -> Self {
        let command = format!("{BEGIN} {then}");
        self.plan = self.plan.container_running(name, &command);
        self.changed(|container| {
            let mut variables = vec![json!({ "name": "NAME", "value": name })];
            if let Some(priority) = priority {
                variables.push(json!({ "name": PRIORITY_VARIABLE, "value": priority }));
            }
            container["env"] = json!(variables);
        })
    }

    /// Changes the container that was added last.
    pub fn changed(mut self, change: impl FnOnce(&mut Value)) -> Self {
        self.plan = self.plan.changed(change);
        self
    }

    pub fn with(mut self, field: &str, value: Value) -> Self {
        self.plan = self.plan.with(field, value);
        self
    }

    /// The pod as a manifest for kubectl.
    pub fn manifest(&self) -> Value {
        let mut manifest = self.plan.manifest();
        manifest["metadata"]["annotations"] = self.annotations.clone();
        manifest
    }

    /// The pod as a workload's template, with that label `app`.
    pub fn template(&self, app: &str) -> Value {
        let manifest = self.manifest();
        json!({
            "metadata": { "labels": { "app": app }, "annotations": self.annotations },
            "spec": manifest["spec"],
        })
    }
}

// === impl Space: launches ===

impl Space {
    /// Creates a pod with launch priorities.
    ///
    /// # Errors
    /// It is refused.
    pub async fn create_ordered(&self, ordered: &Ordered) -> Result<Pod> {
        let pod: Pod = serde_json::from_value(ordered.manifest())?;
        Ok(self.pods().create(&Default::default(), &pod).await?)
    }

    /// Waits until a pod says that all its levels are open.
    ///
    /// # Errors
    /// It does not.
    pub async fn wait_launched(&self, pod: &str) -> Result<Pod> {
        let what = format!("the launch of pod {pod} to be completed");
        wait_for(&what, PATIENCE, async || {
            let pod = self.pods().get(pod).await?;
            let annotations = pod.metadata.annotations.clone().unwrap_or_default();
            let word = annotations.get(labels::LAUNCH_COMPLETED);
            Ok(if word.map(String::as_str) == Some("true") {
                Look::Found(pod)
            } else {
                Look::NotYet(format!("{annotations:?}"))
            })
        })
        .await
    }

    /// Lets a probed container be ready.
    ///
    /// # Errors
    /// It does not run.
    pub async fn let_up(&self, pod: &str, container: &str) -> Result<()> {
        let file = format!("/shared/up-{container}");
        let touch = [
            "-n", &self.name, "exec", pod, "-c", container, "--", "touch", &file,
        ];
        crate::kubectl::kubectl(&touch, "").await.map(drop)
    }
}

/// When the kubelet says that a container started.
///
/// # Errors
/// It does not say so.
pub fn started_at(pod: &Pod, container: &str) -> Result<Timestamp> {
    let status = statuses(pod).iter().find(|status| status.name == container);
    let state =
        status.and_then(|status| status.state.as_ref()?.running.as_ref()?.started_at.as_ref());
    state
        .map(|time| time.0)
        .with_context(|| format!("container {container} does not run"))
}

//! Explanations of a request and of a pod: current state, causes, and a timeline.
//!
//! Each explanation is first a struct, which `-o json` prints (its shape is in `docs/kubectl-crr.md`), and then lines.
//! Pure: no requests, no clock. This file composes the story of a pod.

mod container;
mod gate;
mod launch;
mod request;
mod restarts;
mod timeline;

use jiff::Timestamp;
use k8s_api::crd::ContainerRecreateRequest as Crr;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt;
use model::launch::BarrierMap;
use serde::Serialize;

pub(crate) use self::request::RequestExplained;
use self::{
    container::{ContainerStory, containers},
    gate::{GateStory, gate},
    launch::{LaunchStory, launch},
    request::RequestStory,
    timeline::Moment,
};
use crate::pod::{condition, is_ready, node};

/// The number of ended requests in a story.
const ENDED_REQUESTS: usize = 5;

/// Objects that explain a pod. Each section of its story is a function of this.
pub(crate) struct PodEvidence {
    pub(crate) pod: Pod,
    pub(crate) requests: Vec<Crr>,
    /// Events about the pod and about these requests.
    pub(crate) events: Vec<Event>,
    pub(crate) barriers: Barriers,
}

/// The ConfigMap of a pod with launch barriers.
pub(crate) enum Barriers {
    /// Not read: it may not be, or the pod has no barriers.
    Unknown,
    Absent,
    Present(BarrierMap),
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodStory {
    kind: &'static str,
    name: String,
    namespace: String,
    node: Option<String>,
    phase: String,
    ready: bool,
    not_ready_because: Option<String>,
    deleted_at: Option<Timestamp>,
    containers: Vec<ContainerStory>,
    shut_gate: Option<GateStory>,
    launch: Option<LaunchStory>,
    /// All active ones and the newest ended ones, newest first.
    requests: Vec<RequestStory>,
    /// The number of ended requests that are left out.
    older_requests: usize,
    timeline: Vec<Moment>,
}

// === impl PodStory ===

impl PodStory {
    pub(crate) fn new(evidence: &PodEvidence) -> Self {
        let pod = &evidence.pod;
        let containers = containers(evidence);
        let (requests, older_requests) = requests(evidence);
        let timeline = moments(evidence, &containers, &requests);
        let phase = pod.status.as_ref().and_then(|it| it.phase.clone());
        let deleted = pod.metadata.deletion_timestamp.as_ref();
        Self {
            kind: "Pod",
            name: pod.name_any(),
            namespace: pod.namespace().unwrap_or_default(),
            node: Some(node(pod).to_owned()).filter(|node| !node.is_empty()),
            phase: phase.unwrap_or_default(),
            ready: is_ready(pod),
            not_ready_because: not_ready_because(pod),
            deleted_at: deleted.map(|time| time.0),
            containers,
            shut_gate: gate(pod),
            launch: launch(evidence),
            requests,
            older_requests,
            timeline,
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let indented = |lines: Vec<String>| lines.into_iter().map(|line| format!("  {line}"));
        let mut lines = vec![self.head(), "Containers:".to_owned()];
        let containers = self.containers.iter();
        lines.extend(containers.flat_map(|it| indented(it.lines())));
        lines.extend(self.launch.iter().flat_map(LaunchStory::lines));
        lines.extend(self.shut_gate.iter().flat_map(GateStory::lines));
        if !self.requests.is_empty() {
            lines.push("Requests:".to_owned());
            let requests = self.requests.iter();
            lines.extend(requests.flat_map(|it| indented(it.lines())));
            if self.older_requests > 0 {
                lines.push(format!("  and {} older", self.older_requests));
            }
        }
        let subject = format!("pod/{}", self.name);
        lines.extend(timeline::lines(&self.timeline, &subject));
        lines
    }

    fn head(&self) -> String {
        let mut head = format!("pod {}: {}", self.name, self.phase);
        if let Some(node) = &self.node {
            head += &format!(" on {node}");
        }
        head += if self.ready { ", ready" } else { ", not ready" };
        if let Some(why) = &self.not_ready_because {
            head += &format!(" ({why})");
        }
        if let Some(at) = self.deleted_at {
            head += &format!(", to be gone by {at}");
        }
        head
    }
}

/// Reason and message of the condition `Ready`, unless the pod is ready.
fn not_ready_because(pod: &Pod) -> Option<String> {
    let ready = condition(pod, "Ready").filter(|it| it.status != "True")?;
    let why = [ready.reason.as_deref(), ready.message.as_deref()];
    let why: Vec<_> = why.into_iter().flatten().collect();
    (!why.is_empty()).then(|| why.join(": "))
}

/// The requests of the story, newest first, and the number of those left out.
fn requests(evidence: &PodEvidence) -> (Vec<RequestStory>, usize) {
    let requests = evidence.requests.iter();
    let mut stories: Vec<_> = requests.map(RequestStory::new).collect();
    // By name as well: creation times have whole seconds.
    stories.sort_by(|a, b| (b.created_at, &b.name).cmp(&(a.created_at, &a.name)));
    let mut ended = 0;
    stories.retain(|request| {
        ended += usize::from(!request.active);
        request.active || ended <= ENDED_REQUESTS
    });
    let left_out = evidence.requests.len() - stories.len();
    (stories, left_out)
}

/// All events, the containers' ends, and the beginnings and ends of the requests in the story.
fn moments(
    evidence: &PodEvidence,
    containers: &[ContainerStory],
    stories: &[RequestStory],
) -> Vec<Moment> {
    let about = format!("pod/{}", evidence.pod.name_any());
    let events = evidence.events.iter().filter_map(Moment::of_event);
    let ends = containers.iter().flat_map(|it| it.moments(&about));
    // Oldest first: what happened in the same second stays in this order.
    let requests = stories.iter().rev().flat_map(RequestStory::moments);
    timeline::in_order(events.chain(ends).chain(requests).collect())
}

#[cfg(test)]
mod tests;

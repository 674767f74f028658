//! A pod explained: its containers, its readiness gate, its requests, and what happened when.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde::Serialize;

use super::{
    Seen,
    container::{ContainerStory, containers},
    gate::{GateStory, gate},
    launch::{LaunchStory, launch},
    request::RequestStory,
    timeline::{self, Moment},
};

/// How many of the requests that have ended are told.
const ENDED_REQUESTS: usize = 5;

/// A pod's story.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodStory {
    kind: &'static str,
    name: String,
    namespace: String,
    node: Option<String>,
    phase: String,
    ready: bool,
    /// Why it is not ready, by the condition.
    not_ready_because: Option<String>,
    deleted_at: Option<Timestamp>,
    containers: Vec<ContainerStory>,
    /// The readiness gate, where it is shut.
    shut_gate: Option<GateStory>,
    /// Where its containers start level by level.
    launch: Option<LaunchStory>,
    /// All that are active and the youngest that have ended, youngest first.
    requests: Vec<RequestStory>,
    /// How many older ones there are that have ended.
    older_requests: usize,
    timeline: Vec<Moment>,
}

// === impl PodStory ===

impl PodStory {
    pub(crate) fn new(seen: &Seen) -> Self {
        let pod = &seen.pod;
        let containers = containers(seen);
        let (requests, older_requests) = requests(seen);
        let timeline = moments(seen, &containers, &requests);
        let status = pod.status.as_ref();
        let (ready, not_ready_because) = readiness(pod);
        let deleted = pod.metadata.deletion_timestamp.as_ref();
        Self {
            kind: "Pod",
            name: pod.name_any(),
            namespace: pod.namespace().unwrap_or_default(),
            node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            phase: status
                .and_then(|status| status.phase.clone())
                .unwrap_or_default(),
            ready,
            not_ready_because,
            deleted_at: deleted.map(|time| time.0),
            containers,
            shut_gate: gate(pod),
            launch: launch(seen),
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
        let node = self.node.as_ref().map(|node| format!(" on {node}"));
        let ready = match (self.ready, &self.not_ready_because) {
            (true, _) => ", ready".to_owned(),
            (false, Some(why)) => format!(", not ready ({why})"),
            (false, None) => ", not ready".to_owned(),
        };
        let deleted = self.deleted_at.map(|at| format!(", to be gone by {at}"));
        format!(
            "pod {}: {}{}{ready}{}",
            self.name,
            self.phase,
            node.unwrap_or_default(),
            deleted.unwrap_or_default(),
        )
    }
}

fn readiness(pod: &Pod) -> (bool, Option<String>) {
    let conditions = pod.status.iter().flat_map(|status| &status.conditions);
    let mut conditions = conditions.flatten();
    let Some(ready) = conditions.find(|it| it.type_ == "Ready") else {
        return (false, None);
    };
    let told = [ready.reason.as_deref(), ready.message.as_deref()];
    let told: Vec<_> = told.into_iter().flatten().collect();
    let why = (!told.is_empty()).then(|| told.join(": "));
    let is_ready = ready.status == "True";
    (is_ready, why.filter(|_| !is_ready))
}

/// The requests that are told, youngest first, and how many are not.
fn requests(seen: &Seen) -> (Vec<RequestStory>, usize) {
    let mut all: Vec<_> = seen.requests.iter().map(RequestStory::new).collect();
    // By name as well: creation times have whole seconds.
    all.sort_by(|a, b| (b.created_at, &b.name).cmp(&(a.created_at, &a.name)));
    let before = all.len();
    let mut ended = 0;
    all.retain(|request| {
        ended += usize::from(!request.active);
        request.active || ended <= ENDED_REQUESTS
    });
    let left_out = before - all.len();
    (all, left_out)
}

/// All events, the containers' ends, and the told requests' beginnings and ends.
fn moments(seen: &Seen, containers: &[ContainerStory], told: &[RequestStory]) -> Vec<Moment> {
    let about = format!("pod/{}", seen.pod.name_any());
    let is_told = |name: &str| told.iter().any(|story| story.name == name);
    let mut moments: Vec<_> = seen.events.iter().filter_map(Moment::of_event).collect();
    moments.extend(containers.iter().flat_map(|it| it.moments(&about)));
    let requests = seen.requests.iter();
    let requests = requests.filter(|request| is_told(&request.name_any()));
    moments.extend(requests.flat_map(Moment::of_request));
    timeline::in_order(moments)
}

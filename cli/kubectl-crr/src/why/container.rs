//! The story of a container: its state by the kubelet, and which of its restarts were requested.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated};
use model::events::requested_by;
use serde::Serialize;

use super::{
    PodEvidence,
    restarts::{RequestedRestart, cause_of, requested_restarts},
    timeline::Moment,
};
use crate::pod::{self, ContainerKind, statuses};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContainerStory {
    name: String,
    kind: ContainerKind,
    ready: bool,
    restart_count: i32,
    state: State,
    /// The end of the previous instance.
    last_end: Option<End>,
    requested_restarts: Vec<RequestedRestart>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "is", rename_all = "camelCase")]
enum State {
    Running {
        since: Option<Timestamp>,
    },
    Waiting {
        reason: Option<String>,
        message: Option<String>,
    },
    Ended(End),
    /// The kubelet has not reported the container.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct End {
    at: Option<Timestamp>,
    reason: Option<String>,
    exit_code: i32,
    signal: Option<i32>,
    message: Option<String>,
    /// The request that caused it, if known.
    request: Option<String>,
}

/// Every container of the pod in the order of its spec: init containers first.
pub(super) fn containers(evidence: &PodEvidence) -> Vec<ContainerStory> {
    let containers = pod::containers(&evidence.pod);
    let stories = containers.map(|(name, kind)| ContainerStory::new(evidence, name, kind));
    stories.collect()
}

// === impl ContainerStory ===

impl ContainerStory {
    fn new(evidence: &PodEvidence, name: &str, kind: ContainerKind) -> Self {
        let status = statuses(&evidence.pod).find(|status| status.name == name);
        let restarts = requested_restarts(name, &evidence.requests, &evidence.events);
        let (state, last_end) = status.map_or((State::Unknown, None), |status| {
            let end = |ended: &ContainerStateTerminated| {
                let cause = cause_of(ended, status, &restarts);
                End::new(ended, cause.map(|cause| cause.request.clone()))
            };
            let last = status.last_state.as_ref();
            let last = last.and_then(|state| state.terminated.as_ref());
            (State::new(status.state.as_ref(), end), last.map(end))
        });
        Self {
            name: name.to_owned(),
            kind,
            ready: status.is_some_and(|status| status.ready),
            restart_count: status.map_or(0, |status| status.restart_count),
            state,
            last_end,
            requested_restarts: restarts,
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let kind = match self.kind {
            ContainerKind::Container => "",
            ContainerKind::Sidecar => " (sidecar)",
            ContainerKind::Init => " (init)",
        };
        let ready = match (&self.state, self.ready) {
            (State::Running { .. }, true) => ", ready",
            (State::Running { .. }, false) => ", not ready",
            (State::Waiting { .. } | State::Ended(_) | State::Unknown, _) => "",
        };
        let restarts = match (self.restart_count, self.requested_restarts.len()) {
            (0, 0) => String::new(),
            (count, known) => format!(", restarts {count}, known to be requested {known}"),
        };
        let (name, state) = (&self.name, self.state.words());
        let mut lines = vec![format!("{name}{kind}: {state}{ready}{restarts}")];
        let last_end = self.last_end.iter();
        lines.extend(last_end.map(|end| format!("  last {}", end.words())));
        lines.extend(self.requested_restarts.iter().map(|restart| {
            let at = at(restart.at);
            let by = requested_by(restart.requested_by.as_deref());
            format!("  requested{at}: crr/{}{by}", restart.request)
        }));
        lines
    }

    /// Its ends: the kubelet emits no events about them.
    pub(super) fn moments(&self, about: &str) -> Vec<Moment> {
        let now = match &self.state {
            State::Ended(end) => Some(end),
            State::Running { .. } | State::Waiting { .. } | State::Unknown => None,
        };
        let what = format!("container {} ended", self.name);
        let moment = |end: &End| Some(Moment::new(end.at?, about, &what, &end.how()));
        self.last_end.iter().chain(now).filter_map(moment).collect()
    }
}

// === impl State ===

impl State {
    fn new(state: Option<&ContainerState>, end: impl Fn(&ContainerStateTerminated) -> End) -> Self {
        let Some(state) = state else {
            return Self::Unknown;
        };
        if let Some(running) = &state.running {
            let since = running.started_at.as_ref().map(|time| time.0);
            return Self::Running { since };
        }
        if let Some(ended) = &state.terminated {
            return Self::Ended(end(ended));
        }
        // Upstream: with none of the three, the container is waiting.
        let waiting = state.waiting.clone().unwrap_or_default();
        let (reason, message) = (waiting.reason, waiting.message);
        Self::Waiting { reason, message }
    }

    fn words(&self) -> String {
        match self {
            Self::Running { since: Some(since) } => format!("running since {since}"),
            Self::Running { since: None } => "running".to_owned(),
            Self::Waiting { reason, message } => {
                let message = message.as_ref().map(|message| format!(" ({message})"));
                format!(
                    "waiting: {}{}",
                    or_none(reason),
                    message.unwrap_or_default()
                )
            }
            Self::Ended(end) => end.words(),
            Self::Unknown => "the kubelet has not told its state".to_owned(),
        }
    }
}

// === impl End ===

impl End {
    fn new(ended: &ContainerStateTerminated, request: Option<String>) -> Self {
        let message = ended.message.as_deref().unwrap_or_default().trim();
        Self {
            at: ended.finished_at.as_ref().map(|time| time.0),
            reason: ended.reason.clone(),
            exit_code: ended.exit_code,
            signal: ended.signal.filter(|signal| *signal != 0),
            message: (!message.is_empty()).then(|| message.to_owned()),
            request,
        }
    }

    fn words(&self) -> String {
        format!("ended{}: {}", at(self.at), self.how())
    }

    /// Exit code, signal, message and cause.
    fn how(&self) -> String {
        let mut text = format!("{}, exit code {}", or_none(&self.reason), self.exit_code);
        if let Some(signal) = self.signal {
            text += &format!(", signal {signal}");
        }
        if let Some(message) = &self.message {
            text += &format!(" ({message})");
        }
        match &self.request {
            Some(request) => format!("{text}; requested by crr/{request}"),
            None => format!("{text}; not by a known request"),
        }
    }
}

fn at(time: Option<Timestamp>) -> String {
    time.map(|time| format!(" {time}")).unwrap_or_default()
}

fn or_none(reason: &Option<String>) -> &str {
    reason.as_deref().unwrap_or("no reason told")
}

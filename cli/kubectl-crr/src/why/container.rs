//! A container of a pod: the kubelet's word on it, and which of its restarts were asked for.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateTerminated, ContainerStatus, Pod,
};
use serde::Serialize;

use super::{
    Seen,
    request::by,
    restarts::{RequestedRestart, cause_of, requested_restarts},
    timeline::Moment,
};

/// How a container stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContainerStory {
    name: String,
    kind: Kind,
    ready: bool,
    restart_count: i32,
    state: State,
    /// How the instance before ended.
    last_end: Option<End>,
    /// The restarts that are known to be asked for, oldest first.
    requested_restarts: Vec<RequestedRestart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Kind {
    Container,
    /// A native one: an init container that lives on.
    Sidecar,
    Init,
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
    /// The kubelet has said nothing of it.
    Unknown,
}

/// How an instance ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct End {
    at: Option<Timestamp>,
    reason: Option<String>,
    exit_code: i32,
    signal: Option<i32>,
    message: Option<String>,
    /// The request that ended it, where one is known to have.
    request: Option<String>,
}

/// Every container of the pod, in the order of its spec: init containers first.
pub(super) fn containers(seen: &Seen) -> Vec<ContainerStory> {
    let Some(spec) = &seen.pod.spec else {
        return Vec::new();
    };
    let inits = spec.init_containers.iter().flatten();
    let inits = inits.map(|container| match container.restart_policy.as_deref() {
        Some("Always") => (container, Kind::Sidecar),
        Some(_) | None => (container, Kind::Init),
    });
    let mains = spec.containers.iter().map(|it| (it, Kind::Container));
    let all = inits.chain(mains);
    all.map(|(container, kind)| story(seen, container, kind))
        .collect()
}

fn story(seen: &Seen, container: &Container, kind: Kind) -> ContainerStory {
    let name = &container.name;
    let status = status_of(&seen.pod, name);
    let restarts = requested_restarts(name, &seen.requests, &seen.events);
    let (state, last_end) = status.map_or((State::Unknown, None), |status| {
        let last = status.last_state.as_ref();
        let last = last.and_then(|state| state.terminated.as_ref());
        let end = |it: &ContainerStateTerminated| end(it, status, &restarts);
        (state(status.state.as_ref(), end), last.map(end))
    });
    ContainerStory {
        name: name.clone(),
        kind,
        ready: status.is_some_and(|status| status.ready),
        restart_count: status.map_or(0, |status| status.restart_count),
        state,
        last_end,
        requested_restarts: restarts,
    }
}

fn status_of<'a>(pod: &'a Pod, name: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let inits = status.init_container_statuses.iter().flatten();
    let mut all = inits.chain(status.container_statuses.iter().flatten());
    all.find(|status| status.name == name)
}

fn state(state: Option<&ContainerState>, end: impl Fn(&ContainerStateTerminated) -> End) -> State {
    let Some(state) = state else {
        return State::Unknown;
    };
    if let Some(running) = &state.running {
        let since = running.started_at.as_ref().map(|time| time.0);
        return State::Running { since };
    }
    if let Some(ended) = &state.terminated {
        return State::Ended(end(ended));
    }
    // Upstream: with none of the three, the container is waiting.
    let waiting = state.waiting.clone().unwrap_or_default();
    State::Waiting {
        reason: waiting.reason,
        message: waiting.message,
    }
}

fn end(
    ended: &ContainerStateTerminated,
    status: &ContainerStatus,
    restarts: &[RequestedRestart],
) -> End {
    let cause = cause_of(ended, status, restarts);
    let message = ended.message.as_deref().map(str::trim).map(str::to_owned);
    End {
        at: ended.finished_at.as_ref().map(|time| time.0),
        reason: ended.reason.clone(),
        exit_code: ended.exit_code,
        signal: ended.signal.filter(|signal| *signal != 0),
        message: message.filter(|message| !message.is_empty()),
        request: cause.map(|cause| cause.request.clone()),
    }
}

// === impl ContainerStory ===

impl ContainerStory {
    pub(super) fn lines(&self) -> Vec<String> {
        let kind = match self.kind {
            Kind::Container => "",
            Kind::Sidecar => " (sidecar)",
            Kind::Init => " (init)",
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
        let mut lines = vec![format!(
            "{}{kind}: {}{ready}{restarts}",
            self.name,
            self.state.words()
        )];
        if let Some(end) = &self.last_end {
            lines.push(format!("  last {}", end.words()));
        }
        lines.extend(self.requested_restarts.iter().map(|restart| {
            let at = restart.at.map(|at| format!(" {at}")).unwrap_or_default();
            let by = by(restart.requested_by.as_deref());
            format!("  requested{at}: crr/{}{by}", restart.request)
        }));
        lines
    }

    /// Its ends: the kubelet tells no event of them.
    pub(super) fn moments(&self, about: &str) -> Vec<Moment> {
        let now = match &self.state {
            State::Ended(end) => Some(end),
            State::Running { .. } | State::Waiting { .. } | State::Unknown => None,
        };
        let ends = self.last_end.iter().chain(now);
        let moment = |end: &End| {
            let what = format!("container {} ended", self.name);
            Some(Moment::new(end.at?, about, what, end.how()))
        };
        ends.filter_map(moment).collect()
    }
}

// === impl State ===

impl State {
    fn words(&self) -> String {
        match self {
            Self::Running { since: Some(since) } => format!("running since {since}"),
            Self::Running { since: None } => "running".to_owned(),
            Self::Waiting { reason, message } => {
                let reason = reason.as_deref().unwrap_or("no reason told");
                match message.as_deref() {
                    Some(message) => format!("waiting: {reason} ({message})"),
                    None => format!("waiting: {reason}"),
                }
            }
            Self::Ended(end) => end.words(),
            Self::Unknown => "the kubelet has not told its state".to_owned(),
        }
    }
}

// === impl End ===

impl End {
    fn words(&self) -> String {
        let at = self.at.map(|at| format!(" {at}")).unwrap_or_default();
        format!("ended{at}: {}", self.how())
    }

    /// How it ended, and whether somebody asked for it.
    fn how(&self) -> String {
        let reason = self.reason.as_deref().unwrap_or("no reason told");
        let signal = self.signal.map(|signal| format!(", signal {signal}"));
        let message = self.message.as_ref().map(|it| format!(" ({it})"));
        let cause = match &self.request {
            Some(request) => format!("requested by crr/{request}"),
            None => "not by a known request".to_owned(),
        };
        format!(
            "{reason}, exit code {}{}{}; {cause}",
            self.exit_code,
            signal.unwrap_or_default(),
            message.unwrap_or_default(),
        )
    }
}

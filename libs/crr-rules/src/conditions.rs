//! The conditions of a CRR: is it accepted, has its node heard of it, has it succeeded, and why not.
//!
//! Owns reasons and messages. A message says what is waited for or what went wrong, so that a person can act on it;
//! it never holds the present time, so that nothing is written just because time passes.

use jiff::{Timestamp, Unit};
use model::{
    condition::{Condition, ConditionState, ConditionType},
    crr::ContainerRecreateState,
    ids::CrrName,
    order::Refusal,
    phase::ContainerPhase,
    time::Now,
};
use order_rules::{KnownOrder, Progress, Silence};

use crate::{messages, snapshot::Snapshot};

/// Where a CRR stands as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Situation<'a> {
    /// Another CRR of the pod is at work.
    Behind(&'a CrrName),
    /// The pod is kept NotReady before the first stop.
    Draining,
    Working,
    Ended(End),
}

/// Why a CRR ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Every container is through, or one has failed and that is enough.
    Through,
    NotAdmitted,
    PodGone,
    Deadline,
    NodeSilent,
}

/// Of a CRR whose containers have to wait for the drain.
const DRAINING: &str = "the pod is kept NotReady first";

/// State, reason and message.
type Said = (ConditionState, &'static str, String);

// === impl End ===

impl End {
    /// `status.message`.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Through => "",
            Self::NotAdmitted => messages::NOT_ADMITTED,
            Self::PodGone => messages::POD_GONE,
            Self::Deadline => messages::DEADLINE,
            Self::NodeSilent => messages::NODE_SILENT,
        }
    }
}

/// All conditions as they should be; a time is kept for as long as its state is.
pub(crate) fn conditions(
    snapshot: &Snapshot,
    states: &[ContainerRecreateState],
    situation: Situation<'_>,
    now: Now,
) -> Vec<Condition> {
    let condition = |kind, (state, reason, message): Said| {
        let before = snapshot.crr.status.condition(kind);
        let since = before
            .filter(|before| before.state == state)
            .map(|before| before.since);
        Condition {
            kind,
            state,
            reason: reason.to_owned(),
            message,
            since: since.unwrap_or_else(|| whole_seconds(now.wall)),
        }
    };
    let mut all = vec![
        condition(ConditionType::Accepted, accepted(snapshot)),
        condition(
            ConditionType::Dispatched,
            dispatched(snapshot, states, situation),
        ),
    ];
    let grace = snapshot
        .crr
        .status
        .condition(ConditionType::PreRecreateGrace);
    match (grace, situation) {
        (Some(grace), _) => all.push(grace.clone()),
        (None, Situation::Draining) => all.push(condition(
            ConditionType::PreRecreateGrace,
            (
                ConditionState::True,
                "PreRecreateGrace",
                "the pod is kept NotReady before its containers are stopped".to_owned(),
            ),
        )),
        (None, Situation::Behind(_) | Situation::Working | Situation::Ended(_)) => {}
    }
    all.push(condition(
        ConditionType::Succeeded,
        succeeded(snapshot, states, situation),
    ));
    all
}

fn accepted(snapshot: &Snapshot) -> Said {
    let crr = &snapshot.crr;
    match (&crr.pod_uid, &crr.node) {
        (Some(uid), Some(node)) => (
            ConditionState::True,
            "Admitted",
            format!("for pod {} ({uid}) on node {node}", crr.pod.name),
        ),
        (Some(_) | None, _) => (
            ConditionState::False,
            "NotAdmitted",
            messages::NOT_ADMITTED.to_owned(),
        ),
    }
}

fn dispatched(
    snapshot: &Snapshot,
    states: &[ContainerRecreateState],
    situation: Situation<'_>,
) -> Said {
    let crr = &snapshot.crr;
    let before = crr.status.condition(ConditionType::Dispatched);
    if let Some(before) = before.filter(|before| before.state == ConditionState::True) {
        return (ConditionState::True, "NodeAnswered", before.message.clone());
    }
    let node = crr.node.as_ref().map_or("?", |node| node.as_str());
    let has_answered = |order: &KnownOrder| match &order.progress {
        Progress::Accepted
        | Progress::Done(_)
        | Progress::Refused(Refusal::OtherInstance { .. } | Refusal::AlreadyExited) => true,
        Progress::Sent | Progress::Refused(_) | Progress::Unanswered { .. } => false,
    };
    let is_known = |state: &ContainerRecreateState| {
        state.is_killed || matches!(state.phase, ContainerPhase::Recreating)
    };
    if snapshot.orders.values().any(has_answered) || states.iter().any(is_known) {
        let message = format!("node {node} has the order");
        return (ConditionState::True, "NodeAnswered", message);
    }
    match situation {
        Situation::Behind(other) => {
            return (
                ConditionState::False,
                "WaitingForTurn",
                messages::waiting_for(other),
            );
        }
        Situation::Draining => {
            return (ConditionState::False, "Draining", DRAINING.to_owned());
        }
        Situation::Working | Situation::Ended(_) => {}
    }
    for state in states {
        let reason = match snapshot.progress(&state.name) {
            Some(Progress::Unanswered { silence, .. }) if !state.message.is_empty() => {
                match silence {
                    Silence::Node => "NodeSilent",
                    Silence::Bus => "BusAway",
                }
            }
            Some(Progress::Refused(_)) => "NodeRefused",
            Some(_) | None => continue,
        };
        return (ConditionState::False, reason, state.message.clone());
    }
    let message = format!("the order is on its way to node {node}");
    (ConditionState::False, "Sending", message)
}

fn succeeded(
    snapshot: &Snapshot,
    states: &[ContainerRecreateState],
    situation: Situation<'_>,
) -> Said {
    let not_yet = |reason, message: String| (ConditionState::Unknown, reason, message);
    match situation {
        Situation::Ended(End::Through)
            if states
                .iter()
                .all(|state| state.phase == ContainerPhase::Succeeded) =>
        {
            let names: Vec<_> = states.iter().map(|state| state.name.as_str()).collect();
            let message = format!("recreated {}", names.join(", "));
            (ConditionState::True, "AllRecreated", message)
        }
        Situation::Ended(end) => {
            let (reason, message) = why_not(snapshot, states, end);
            (ConditionState::False, reason, message)
        }
        Situation::Behind(other) => not_yet("WaitingForTurn", messages::waiting_for(other)),
        Situation::Draining => not_yet("Draining", DRAINING.to_owned()),
        Situation::Working => {
            let open = states.iter().find(|state| !state.phase.is_final());
            let is_down = open.is_some_and(|state| state.phase == ContainerPhase::Recreating);
            let reason = if is_down {
                "WaitingForContainer"
            } else {
                "Stopping"
            };
            not_yet(reason, open.map(describe).unwrap_or_default())
        }
    }
}

/// Reason and message of an end without success.
fn why_not(
    snapshot: &Snapshot,
    states: &[ContainerRecreateState],
    end: End,
) -> (&'static str, String) {
    let crr = &snapshot.crr;
    let open = states
        .iter()
        .filter(|state| state.phase != ContainerPhase::Succeeded);
    let open = open.map(describe).collect::<Vec<_>>().join("; ");
    match end {
        End::Through => ("ContainerFailed", open),
        End::NotAdmitted => ("NotAdmitted", messages::NOT_ADMITTED.to_owned()),
        End::PodGone => {
            let pod = &crr.pod.name;
            let message = format!("pod {pod} was deleted or replaced before the end: {open}");
            ("PodGone", message)
        }
        End::Deadline => {
            let seconds = crr.active_deadline.unwrap_or_default().as_secs();
            let message =
                format!("activeDeadlineSeconds ({seconds}) passed before the end: {open}");
            ("DeadlineExceeded", message)
        }
        End::NodeSilent => ("NodeSilent", open),
    }
}

/// One container in words.
fn describe(state: &ContainerRecreateState) -> String {
    let why = match (state.message.as_str(), state.phase) {
        ("", ContainerPhase::Pending) => "it is not stopped yet",
        ("", ContainerPhase::Recreating) => "its successor is not up yet",
        ("", ContainerPhase::Succeeded) => "recreated",
        ("", ContainerPhase::Failed) => "failed",
        (message, _) => message,
    };
    format!("container {}: {why}", state.name)
}

/// Kubernetes' times have whole seconds: what is written has to be what is read again.
fn whole_seconds(time: Timestamp) -> Timestamp {
    let rounding = jiff::TimestampRound::new()
        .smallest(Unit::Second)
        .mode(jiff::RoundMode::Trunc);
    time.round(rounding).unwrap_or(time)
}

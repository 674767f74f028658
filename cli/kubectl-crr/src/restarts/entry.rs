//! A pod of the group: the stage of its restart, and its transitions.

use std::{collections::BTreeMap, time::Duration};

use k8s_api::crd::ContainerRecreateRequest as Crr;

use crate::{
    members::{Member, PodSummary},
    outcome::{Outcome, outcome, reason},
    rollout::Progress,
    screen::Line,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Waiting,
    /// Its request has not ended.
    Begun {
        since: Duration,
    },
    /// Its request succeeded; it is not ready again.
    Settling {
        since: Duration,
    },
    Restarted,
    Failed,
    /// It took too long; its request may go on.
    Overdue,
    /// It disappeared before its restart began.
    Gone,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) member: Member,
    pub(crate) stage: Stage,
    pub(crate) request: Option<Crr>,
    /// Container ids before the restart: it is not restarted while it shows one of them.
    pub(super) before: BTreeMap<String, String>,
    /// The watch has shown the request: from then on its absence means that it was deleted.
    pub(super) is_request_seen: bool,
    pub(super) is_request_gone: bool,
}

// === impl Entry ===

impl Entry {
    pub(super) fn new(member: Member) -> Self {
        Self {
            member,
            stage: Stage::Waiting,
            request: None,
            before: BTreeMap::new(),
            is_request_seen: false,
            is_request_gone: false,
        }
    }

    /// The planner's view; `None` if the pod is gone.
    pub(super) fn progress(&self) -> Option<Progress> {
        let has_ended = self.is_request_gone || self.outcome().is_some();
        Some(match self.stage {
            Stage::Waiting => Progress::Waiting,
            Stage::Begun { .. } | Stage::Settling { .. } => Progress::InFlight,
            Stage::Restarted => Progress::Restarted,
            Stage::Overdue if !has_ended => Progress::Overdue,
            Stage::Overdue | Stage::Failed => Progress::Failed,
            Stage::Gone => return None,
        })
    }

    fn outcome(&self) -> Option<Outcome> {
        self.request.as_ref().and_then(outcome)
    }

    /// The next stage and a line about it; `None` if the stage stays.
    pub(super) fn next_stage(
        &self,
        pods: &BTreeMap<String, PodSummary>,
        patience: Duration,
        now: Duration,
    ) -> Option<(Stage, Option<Line>)> {
        let name = &self.member.name;
        let pod = pods.get(&self.member.uid);
        let failed = |why: &str| {
            let line = Line::Bad(format!("{name}: FAILED ({why})"));
            Some((Stage::Failed, Some(line)))
        };
        let overdue = |since: Duration| {
            let seconds = patience.as_secs();
            let line = format!("{name}: not ready again after {seconds}s; it goes on");
            (now >= since + patience).then_some((Stage::Overdue, Some(Line::Bad(line))))
        };
        match self.stage {
            // Waiting => Gone
            Stage::Waiting => {
                let is_gone = pod.is_none_or(|pod| pod.is_leaving);
                let line = Line::Step(format!("{name}: gone before its restart began"));
                is_gone.then_some((Stage::Gone, Some(line)))
            }
            // Begun => Settling | Failed | Overdue
            Stage::Begun { since } => match self.outcome() {
                Some(Outcome::Succeeded) => Some((Stage::Settling { since }, None)),
                Some(Outcome::Failed) => {
                    let why = self.request.as_ref().and_then(reason);
                    failed(why.map_or("its request failed", String::as_str))
                }
                None if self.is_request_gone => failed("the request was deleted"),
                None => overdue(since),
            },
            // Settling => Restarted | Failed | Overdue
            Stage::Settling { since } => match pod {
                None => failed("the pod is gone before it was ready again"),
                Some(pod) if pod.is_ready && self.is_renewed(pod) => {
                    let seconds = now.saturating_sub(since).as_secs();
                    let line = Line::Good(format!("{name}: ready again after {seconds}s"));
                    Some((Stage::Restarted, Some(line)))
                }
                Some(_) => overdue(since),
            },
            Stage::Restarted | Stage::Failed | Stage::Overdue | Stage::Gone => None,
        }
    }

    /// True if every requested container is another instance: the pod's watch may lag behind the request's.
    fn is_renewed(&self, pod: &PodSummary) -> bool {
        let containers = self.request.iter().flat_map(|it| &it.spec.containers);
        let mut names = containers.map(|container| &container.name);
        names.all(|name| pod.instances.get(name) != self.before.get(name))
    }
}

//! One pod of the group: how far it is, and what makes it go further.

use std::{collections::BTreeMap, time::Duration};

use k8s_api::crd::ContainerRecreateRequest;

use super::Said;
use crate::{
    members::{Member, Sight},
    outcome::{Outcome, outcome},
    rollout::Progress,
};

/// How far one pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    Restarted {
        took: Duration,
    },
    Failed {
        why: String,
    },
    /// It took too long; its request may go on.
    Overdue,
    /// It went away before its restart began.
    Gone,
}

/// One pod of the group.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) member: Member,
    pub(crate) stage: Stage,
    pub(crate) request: Option<ContainerRecreateRequest>,
    /// The instances before it began: it is not restarted while it shows one of them.
    pub(super) before: BTreeMap<String, String>,
    /// The watch has shown the request: from then on its absence means something.
    pub(super) is_request_seen: bool,
    pub(super) is_request_gone: bool,
}

// === impl Entry ===

impl Entry {
    /// How the planner sees it; one that is gone is not its business.
    pub(super) fn progress(&self) -> Option<Progress> {
        let has_ended = self.is_request_gone
            || self
                .request
                .as_ref()
                .is_some_and(|it| outcome(it).is_some());
        Some(match self.stage {
            Stage::Waiting => Progress::Waiting,
            Stage::Begun { .. } | Stage::Settling { .. } => Progress::InFlight,
            Stage::Restarted { .. } => Progress::Restarted,
            Stage::Overdue if !has_ended => Progress::Overdue,
            Stage::Overdue | Stage::Failed { .. } => Progress::Failed,
            Stage::Gone => return None,
        })
    }

    /// Its next stage by what is seen, and what is told of it; nothing while nothing changes.
    pub(super) fn next_stage(
        &self,
        sights: &BTreeMap<String, Sight>,
        patience: Duration,
        now: Duration,
    ) -> Option<(Stage, Option<Said>)> {
        let pod = &self.member.name;
        let sight = sights.get(&self.member.uid);
        let failed = |why: &str| {
            let said = Said::Badly(format!("{pod}: FAILED ({why})"));
            (
                Stage::Failed {
                    why: why.to_owned(),
                },
                Some(said),
            )
        };
        let overdue = |since: Duration| {
            let said = format!(
                "{pod}: not ready again after {}s; it goes on",
                patience.as_secs()
            );
            let is_due = now >= since + patience;
            is_due.then_some((Stage::Overdue, Some(Said::Badly(said))))
        };
        match self.stage {
            // Waiting => Gone
            Stage::Waiting => {
                let is_here = sight.is_some_and(|sight| !sight.is_leaving);
                let said = Said::Step(format!("{pod}: gone before its restart began"));
                (!is_here).then_some((Stage::Gone, Some(said)))
            }
            // Begun => Settling | Failed | Overdue
            Stage::Begun { since } => match self.request.as_ref().and_then(outcome) {
                Some(Outcome::Succeeded) => Some((Stage::Settling { since }, None)),
                Some(Outcome::Failed) => Some(failed(&self.why())),
                None if self.is_request_gone => Some(failed("the request was deleted")),
                None => overdue(since),
            },
            // Settling => Restarted | Failed | Overdue
            Stage::Settling { since } => match sight {
                None => Some(failed("the pod is gone before it was ready again")),
                Some(sight) if sight.is_ready && self.is_renewed(sight) => {
                    let took = now.saturating_sub(since);
                    let said = Said::Well(format!("{pod}: ready again after {}s", took.as_secs()));
                    Some((Stage::Restarted { took }, Some(said)))
                }
                Some(_) => overdue(since),
            },
            Stage::Restarted { .. } | Stage::Failed { .. } | Stage::Overdue | Stage::Gone => None,
        }
    }

    /// Whether every container that was asked for is another instance: what is seen of a pod may be older than what
    /// is seen of its request.
    fn is_renewed(&self, sight: &Sight) -> bool {
        let asked = self
            .request
            .iter()
            .flat_map(|request| &request.spec.containers);
        let mut names = asked.map(|container| &container.name);
        names.all(|name| sight.instances.get(name) != self.before.get(name))
    }

    fn why(&self) -> String {
        let status = self
            .request
            .as_ref()
            .and_then(|request| request.status.as_ref());
        let condition =
            status.and_then(|it| it.conditions.iter().find(|it| it.type_ == "Succeeded"));
        let message = status.and_then(|status| status.message.as_ref());
        let why = condition.map(|it| &it.message).or(message);
        let why = why.filter(|why| !why.is_empty());
        why.map_or_else(|| "its request failed".to_owned(), Clone::clone)
    }
}

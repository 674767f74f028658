//! How far the restart of a group of pods is: what is seen goes in, what is next and what is told come out.
//!
//! A machine without clock or requests: times are those since the command began. Which pods are next is `rollout`'s.

mod entry;
mod tally;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

pub(crate) use self::entry::{Entry, Stage};
use crate::{
    cluster::News,
    members::{Group, Member, Sight, controller, sight},
    outcome::{Outcome, lines, outcome},
    rollout::{self, OnFailure, Plan, Progress},
};

/// What a user allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_unavailable: usize,
    pub(crate) on_failure: OnFailure,
    /// For each pod to be ready again, and for room to begin the next.
    pub(crate) patience: Duration,
}

/// One line to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A step on the way; a picture shows it better.
    Step(String),
    /// How a pod ended.
    Well(String),
    Badly(String),
}

/// All pods of the group.
#[derive(Debug)]
pub(crate) struct Restarts {
    pub(crate) entries: Vec<Entry>,
    limits: Limits,
    uids: BTreeSet<String>,
    strangers: BTreeSet<String>,
    /// Every pod with the labels, by its uid; nothing until all were seen.
    sights: Option<BTreeMap<String, Sight>>,
    are_requests_seen: bool,
    /// Since when none is in flight and none may begin.
    no_room_since: Option<Duration>,
    said: Vec<Said>,
}

// === impl Restarts ===

impl Restarts {
    pub(crate) fn new(group: &Group, limits: Limits) -> Self {
        let entry = |member: &Member| Entry {
            member: member.clone(),
            stage: Stage::Waiting,
            request: None,
            before: BTreeMap::new(),
            is_request_seen: false,
            is_request_gone: false,
        };
        Self {
            entries: group.members.iter().map(entry).collect(),
            limits,
            uids: group.members.iter().map(|it| it.uid.clone()).collect(),
            strangers: group.strangers.clone(),
            sights: None,
            are_requests_seen: false,
            no_room_since: None,
            said: Vec::new(),
        }
    }

    pub(crate) fn on_pods(&mut self, news: News<Pod>) {
        let strangers = &self.strangers;
        let is_ours = |pod: &Pod| controller(pod).is_none_or(|uid| !strangers.contains(&uid));
        let seen = |pod: &Pod| (pod.uid().unwrap_or_default(), sight(pod));
        let sights = self.sights.get_or_insert_default();
        match news {
            News::All(pods) => *sights = pods.iter().filter(|pod| is_ours(pod)).map(seen).collect(),
            News::Is(pod) if is_ours(&pod) => sights.extend([seen(&pod)]),
            News::Gone(pod) => drop(sights.remove(&pod.uid().unwrap_or_default())),
            News::Is(_) | News::Broken(_) => {}
        }
    }

    pub(crate) fn on_requests(&mut self, news: News<ContainerRecreateRequest>) {
        match news {
            News::All(requests) => {
                self.are_requests_seen = true;
                let names: BTreeSet<_> = requests.iter().map(ResourceExt::name_any).collect();
                for entry in self
                    .entries
                    .iter_mut()
                    .filter(|entry| entry.is_request_seen)
                {
                    let name = entry.request.as_ref().map(ResourceExt::name_any);
                    entry.is_request_gone = name.is_some_and(|name| !names.contains(&name));
                }
                requests.into_iter().for_each(|it| self.on_request(it));
            }
            News::Is(request) => self.on_request(request),
            News::Gone(request) => {
                if let Some(entry) = self.entry_of(&request) {
                    entry.is_request_gone = true;
                }
            }
            News::Broken(_) => {}
        }
    }

    fn on_request(&mut self, request: ContainerRecreateRequest) {
        let Some(entry) = self.entry_of(&request) else {
            return;
        };
        entry.is_request_seen = true;
        let told = entry.request.as_ref().map(lines).unwrap_or_default();
        let mut now = lines(&request);
        if matches!(entry.stage, Stage::Begun { .. }) && outcome(&request) == Some(Outcome::Failed)
        {
            now.pop(); // The request's own line is last: this end is told with the pod's.
        }
        entry.request = Some(request);
        let steps = now.into_iter().filter(|line| !told.contains(line));
        self.said.extend(steps.map(Said::Step));
    }

    fn entry_of(&mut self, request: &ContainerRecreateRequest) -> Option<&mut Entry> {
        let mut entries = self.entries.iter_mut();
        entries.find(|entry| entry.member.name == request.spec.pod_name)
    }

    /// A pod's turn has come; its request is about to be made.
    pub(crate) fn begin(&mut self, pod: &str, now: Duration) -> Option<&Member> {
        let entry = self.entries.iter_mut().find(|it| it.member.name == pod)?;
        let sights = self.sights.as_ref();
        let sight = sights.and_then(|sights| sights.get(&entry.member.uid));
        entry.before = sight
            .map(|sight| sight.instances.clone())
            .unwrap_or_default();
        entry.stage = Stage::Begun { since: now };
        Some(&entry.member)
    }

    /// A pod's request was made.
    pub(crate) fn made(&mut self, request: ContainerRecreateRequest) {
        let name = request.name_any();
        let pod = request.spec.pod_name.clone();
        if let Some(entry) = self.entry_of(&request) {
            entry.request = Some(request);
            self.said.push(Said::Step(format!("{pod}: begun ({name})")));
        }
    }

    /// A pod's request could not be made.
    pub(crate) fn refused(&mut self, pod: &str, why: String) {
        if let Some(entry) = self.entries.iter_mut().find(|it| it.member.name == pod) {
            self.said
                .push(Said::Badly(format!("{pod}: FAILED ({why})")));
            entry.stage = Stage::Failed { why };
        }
    }

    /// Takes up what was seen, and plans.
    pub(crate) fn plan(&mut self, now: Duration) -> Plan {
        let Some(sights) = self.sights.as_ref().filter(|_| self.are_requests_seen) else {
            return Plan::Wait;
        };
        for entry in &mut self.entries {
            while let Some((stage, said)) = entry.next_stage(sights, self.limits.patience, now) {
                self.said.extend(said);
                entry.stage = stage;
            }
        }
        let plan = rollout::plan(
            &self.pods(sights),
            self.limits.max_unavailable,
            self.limits.on_failure,
        );
        if plan != Plan::NoRoom {
            self.no_room_since = None;
            return plan;
        }
        match self.no_room_since {
            Some(since) if now >= since + self.limits.patience => {
                let why = "waited in vain for room to begin the next pod";
                self.said.push(Said::Badly(why.to_owned()));
                Plan::End { left: self.left() }
            }
            Some(_) => plan,
            None => {
                self.no_room_since = Some(now);
                let unready = self.unready().join(", ");
                let most = self.limits.max_unavailable;
                let why = format!("waiting for room: not ready: {unready}; at most {most} may be");
                self.said.push(Said::Step(why));
                plan
            }
        }
    }

    fn left(&self) -> Vec<String> {
        let left = self.entries.iter().filter(|it| it.stage == Stage::Waiting);
        left.map(|it| it.member.name.clone()).collect()
    }

    fn pods(&self, sights: &BTreeMap<String, Sight>) -> Vec<rollout::Pod> {
        let ours = self.entries.iter().filter_map(|entry| {
            let sight = sights.get(&entry.member.uid);
            Some(rollout::Pod {
                name: entry.member.name.clone(),
                // One that leaves is not counted on, and its successor is a bystander.
                is_ready: sight.is_none_or(|sight| sight.is_ready || sight.is_leaving),
                progress: entry.progress()?,
            })
        });
        let others = sights.iter();
        let others = others.filter(|(uid, sight)| !self.uids.contains(*uid) && !sight.is_leaving);
        let others = others.map(|(_, sight)| rollout::Pod {
            name: sight.name.clone(),
            is_ready: sight.is_ready,
            progress: Progress::Bystander,
        });
        ours.chain(others).collect()
    }

    /// The pods that are not ready or in flight, as they are counted.
    pub(crate) fn unready(&self) -> Vec<String> {
        let sights = self.sights.as_ref();
        let pods = sights.map(|sights| self.pods(sights)).unwrap_or_default();
        let unready = pods
            .into_iter()
            .filter(|pod| !pod.is_ready || pod.progress == Progress::Overdue);
        unready.map(|pod| pod.name).collect()
    }

    /// Whether none is in flight and none may begin.
    pub(crate) fn is_out_of_room(&self) -> bool {
        self.no_room_since.is_some()
    }

    /// When to plan again though nothing is seen.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        let since = self.entries.iter().filter_map(|entry| match entry.stage {
            Stage::Begun { since } | Stage::Settling { since } => Some(since),
            Stage::Waiting | Stage::Restarted { .. } | Stage::Failed { .. } => None,
            Stage::Overdue | Stage::Gone => None,
        });
        let earliest = since.chain(self.no_room_since).min();
        earliest.map(|since| since + self.limits.patience)
    }

    /// What is to be told since the last time.
    pub(crate) fn take_said(&mut self) -> Vec<Said> {
        std::mem::take(&mut self.said)
    }
}

#[cfg(test)]
mod tests;

//! State of the restart of a group of pods: watch events and answers go in, the next step and lines come out.
//!
//! A machine without clock or IO: times are those since the command began. `rollout` decides which pods are next.

mod entry;
mod tally;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use k8s_api::crd::ContainerRecreateRequest as Crr;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

pub(crate) use self::entry::{Entry, Stage};
use crate::{
    cluster::News,
    members::{Group, Member, PodSummary, controller, summary},
    outcome::{Outcome, lines, outcome},
    rollout::{self, Plan, Progress},
    screen::Line,
};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_unavailable: usize,
    /// Begin more pods after one has failed.
    pub(crate) keeps_going: bool,
    /// For each pod to be ready again, and until the next may begin.
    pub(crate) patience: Duration,
}

#[derive(Debug)]
pub(crate) struct Restarts {
    pub(crate) entries: Vec<Entry>,
    limits: Limits,
    foreign_controllers: BTreeSet<String>,
    /// Every pod with the labels by its uid; `None` before the first list.
    pods: Option<BTreeMap<String, PodSummary>>,
    are_requests_listed: bool,
    /// Since when none is in flight and none may begin.
    pub(crate) no_room_since: Option<Duration>,
    lines: Vec<Line>,
}

// === impl Restarts ===

impl Restarts {
    pub(crate) fn new(group: &Group, limits: Limits) -> Self {
        Self {
            entries: group.members.iter().cloned().map(Entry::new).collect(),
            limits,
            foreign_controllers: group.foreign_controllers.clone(),
            pods: None,
            are_requests_listed: false,
            no_room_since: None,
            lines: Vec::new(),
        }
    }

    pub(crate) fn on_pods(&mut self, news: News<Pod>) {
        let foreign = &self.foreign_controllers;
        let is_ours = |pod: &Pod| controller(pod).is_none_or(|uid| !foreign.contains(&uid));
        let entry = |pod: &Pod| (pod.uid().unwrap_or_default(), summary(pod));
        if let News::Broken(why) = news {
            return self.warn("pods", &why);
        }
        let known = self.pods.get_or_insert_default();
        match news {
            News::All(pods) => *known = pods.iter().filter(|pod| is_ours(pod)).map(entry).collect(),
            News::Is(pod) if is_ours(&pod) => known.extend([entry(&pod)]),
            News::Is(_) | News::Broken(_) => {}
            News::Gone(pod) => drop(known.remove(&pod.uid().unwrap_or_default())),
        }
    }

    pub(crate) fn on_requests(&mut self, news: News<Crr>) {
        match news {
            News::All(requests) => {
                self.are_requests_listed = true;
                let names: BTreeSet<_> = requests.iter().map(ResourceExt::name_any).collect();
                for entry in self.entries.iter_mut().filter(|it| it.is_request_seen) {
                    let name = entry.request.as_ref().map(ResourceExt::name_any);
                    entry.is_request_gone = name.is_some_and(|name| !names.contains(&name));
                }
                requests.into_iter().for_each(|it| self.on_request(it));
            }
            News::Is(request) => self.on_request(request),
            News::Gone(request) => {
                if let Some(entry) = self.entry_mut(&request.spec.pod_name) {
                    entry.is_request_gone = true;
                }
            }
            News::Broken(why) => self.warn("requests", &why),
        }
    }

    fn on_request(&mut self, request: Crr) {
        let Some(entry) = self.entry_mut(&request.spec.pod_name) else {
            return;
        };
        entry.is_request_seen = true;
        let before = entry.request.as_ref().map(lines).unwrap_or_default();
        let mut now = lines(&request);
        let has_failed = outcome(&request) == Some(Outcome::Failed);
        if matches!(entry.stage, Stage::Begun { .. }) && has_failed {
            now.pop(); // The line about the request is last: the line about the pod's end repeats it.
        }
        entry.request = Some(request);
        let steps = now.into_iter().filter(|line| !before.contains(line));
        self.lines.extend(steps.map(Line::Step));
    }

    fn warn(&mut self, watched: &str, why: &str) {
        let warning = format!("watching the {watched}: {why}");
        self.lines.push(Line::Warning(warning));
    }

    fn entry_mut(&mut self, pod: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|it| it.member.name == pod)
    }

    /// Begins a pod's restart; its request is made next.
    pub(crate) fn begin(&mut self, pod: &str, now: Duration) -> Option<&Member> {
        let entry = self.entries.iter_mut().find(|it| it.member.name == pod)?;
        let pods = self.pods.as_ref();
        let pod = pods.and_then(|pods| pods.get(&entry.member.uid));
        entry.before = pod.map(|pod| pod.instances.clone()).unwrap_or_default();
        entry.stage = Stage::Begun { since: now };
        Some(&entry.member)
    }

    pub(crate) fn made(&mut self, request: Crr) {
        let (name, pod) = (request.name_any(), request.spec.pod_name.clone());
        if let Some(entry) = self.entry_mut(&pod) {
            entry.request = Some(request);
            let line = format!("{pod}: begun ({name})");
            self.lines.push(Line::Step(line));
        }
    }

    /// A pod's request could not be made.
    pub(crate) fn refused(&mut self, pod: &str, why: &str) {
        if let Some(entry) = self.entry_mut(pod) {
            entry.stage = Stage::Failed;
            self.lines.push(Line::Bad(format!("{pod}: FAILED ({why})")));
        }
    }

    /// Advances each pod by what is known, and plans.
    pub(crate) fn plan(&mut self, now: Duration) -> Plan {
        let Some(pods) = self.pods.as_ref().filter(|_| self.are_requests_listed) else {
            return Plan::Wait;
        };
        let limits = self.limits;
        for entry in &mut self.entries {
            while let Some((stage, said)) = entry.next_stage(pods, limits.patience, now) {
                self.lines.extend(said);
                entry.stage = stage;
            }
        }
        let pods = self.rollout_pods(pods);
        let plan = rollout::plan(&pods, limits.max_unavailable, limits.keeps_going);
        if plan != Plan::NoRoom {
            self.no_room_since = None;
            return plan;
        }
        match self.no_room_since {
            Some(since) if now >= since + limits.patience => {
                let why = "waited in vain for room to begin the next pod";
                self.lines.push(Line::Bad(why.to_owned()));
                let left = self.tally().waiting;
                return Plan::End { left };
            }
            Some(_) => {}
            None => {
                self.no_room_since = Some(now);
                let (unready, most) = (self.unready().join(", "), limits.max_unavailable);
                let why = format!("waiting for room: not ready: {unready}; at most {most} may be");
                self.lines.push(Line::Step(why));
            }
        }
        plan
    }

    fn rollout_pods(&self, pods: &BTreeMap<String, PodSummary>) -> Vec<rollout::Pod> {
        let ours = self.entries.iter().filter_map(|entry| {
            let pod = pods.get(&entry.member.uid);
            Some(rollout::Pod {
                name: entry.member.name.clone(),
                // A pod that leaves does not count, and its successor is a bystander.
                is_ready: pod.is_none_or(|pod| pod.is_ready || pod.is_leaving),
                progress: entry.progress()?,
            })
        });
        let uids: BTreeSet<_> = self.entries.iter().map(|it| &it.member.uid).collect();
        let others = pods.iter().filter(|(uid, _)| !uids.contains(uid));
        let others = others.filter(|(_, pod)| !pod.is_leaving);
        let others = others.map(|(_, pod)| rollout::Pod {
            name: pod.name.clone(),
            is_ready: pod.is_ready,
            progress: Progress::Bystander,
        });
        ours.chain(others).collect()
    }

    /// Names of the pods that count as not ready.
    pub(crate) fn unready(&self) -> Vec<String> {
        let pods = self.pods.iter().flat_map(|pods| self.rollout_pods(pods));
        let unready = pods.filter(|pod| !pod.is_ready || pod.progress == Progress::Overdue);
        unready.map(|pod| pod.name).collect()
    }

    /// When to plan again without news.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        let begun = self.entries.iter().filter_map(|entry| match entry.stage {
            Stage::Begun { since } | Stage::Settling { since } => Some(since),
            Stage::Waiting | Stage::Restarted | Stage::Failed => None,
            Stage::Overdue | Stage::Gone => None,
        });
        let earliest = begun.chain(self.no_room_since).min();
        earliest.map(|since| since + self.limits.patience)
    }

    /// Lines since the last call.
    pub(crate) fn take_lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }
}

#[cfg(test)]
mod tests;

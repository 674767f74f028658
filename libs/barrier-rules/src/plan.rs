//! The plan: at most one write, and where the launch stands.
//!
//! A level's key is written when every container of higher priority is up; keys are never taken away. After each key the
//! kubelet is nudged by an annotation that names the lowest open level: it does not look at a ConfigMap by itself for
//! ten seconds and more (facts, measured).

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use model::{
    launch::{BarrierMap, LaunchPod, Priority},
    pause::Pause,
    pod::{Pod, PodPhase},
    time::after,
};

use crate::{
    LaunchEvent, MapView, Snapshot, Waiting,
    container::{is_for_its_key, waiting},
    events,
};

/// Nobody tells when a ConfigMap that is not ours is gone: it is looked for again, doubled each time that it is still there.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(10);
const LONGEST_LOOK_PAUSE: Duration = Duration::from_secs(60);

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// At most one at a time; its answer is planned with again.
    pub write: Option<Write>,
    pub stage: Stage,
    /// Each is told once, whatever is said how often: its name is derived.
    pub events: Vec<LaunchEvent>,
    /// Plan again then, if nothing happened before.
    pub wake_at: Option<Timestamp>,
}

/// A write of the API server's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Make the pod's ConfigMap, owned by it.
    CreateMap { keys: BTreeSet<Priority> },
    /// Remove the ConfigMap of an earlier pod of that name.
    DeleteMap { uid: String },
    /// Take the keys out of such a ConfigMap that a finalizer keeps: they would let this pod's containers start at once.
    EmptyMap { uid: String },
    /// Open levels, and label the ConfigMap.
    AddKeys {
        keys: BTreeSet<Priority>,
        uid: String,
    },
    /// Tell the kubelet of the lowest open level; and, once every container has started, that the launch is completed.
    Nudge { level: Priority, completes: bool },
}

/// Where a launch stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// These containers of the level are not up.
    Waiting {
        level: Priority,
        containers: Vec<Waiting>,
    },
    /// Every level is up.
    Launched,
    /// A ConfigMap of that name is somebody else's.
    Blocked,
    /// The pod has ended, or is ending.
    Over,
}

/// Plans for one pod.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let pod = &snapshot.pod.pod;
    let levels = levels(snapshot.pod);
    let has_ended = matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed);
    if has_ended || pod.is_being_deleted || levels.is_empty() {
        return Plan {
            write: None,
            stage: Stage::Over,
            events: Vec::new(),
            wake_at: None,
        };
    }
    if let MapView::Present(map) = snapshot.map
        && whose(map, snapshot.pod) == Whose::Foreign
    {
        return Plan {
            write: None,
            stage: Stage::Blocked,
            events: vec![events::blocked(snapshot.pod)],
            wake_at: Some(look_again_at(snapshot, now)),
        };
    }
    let stage = stage(snapshot, &levels);
    let mut plan = Plan {
        write: next_write(snapshot, &levels, &stage),
        stage,
        events: Vec::new(),
        wake_at: None,
    };
    watch_the_clock(&mut plan, snapshot, now);
    if let MapView::Present(map) = snapshot.map
        && whose(map, snapshot.pod) == Whose::EarlierPods
        && map.is_being_deleted
    {
        let look_again_at = look_again_at(snapshot, now);
        let planned = plan.wake_at.unwrap_or(look_again_at);
        plan.wake_at = Some(planned.min(look_again_at));
    }
    plan
}

/// Counted from the last look, so that a pod that changes all the time does not put it off.
fn look_again_at(snapshot: &Snapshot<'_>, now: Timestamp) -> Timestamp {
    let Some(looked) = snapshot.looked else {
        return now + LOOK_AGAIN_AFTER;
    };
    let doubled = 1_u32.checked_shl(looked.in_vain).unwrap_or(u32::MAX);
    let length = LOOK_AGAIN_AFTER.saturating_mul(doubled);
    let pause = Pause::new(looked.at, length.min(LONGEST_LOOK_PAUSE));
    if pause.is_over(now) {
        now
    } else {
        pause.ends_at()
    }
}

/// Highest first.
fn levels(pod: &LaunchPod) -> Vec<Priority> {
    let levels: BTreeSet<_> = pod.containers.iter().map(|it| it.priority).collect();
    levels.into_iter().rev().collect()
}

/// The highest level that is not up.
fn stage(snapshot: &Snapshot<'_>, levels: &[Priority]) -> Stage {
    for level in levels {
        let of_level = snapshot.pod.containers.iter();
        let of_level = of_level.filter(|container| container.priority == *level);
        let containers: Vec<_> = of_level
            .filter_map(|container| waiting(snapshot, container))
            .collect();
        if !containers.is_empty() {
            return Stage::Waiting {
                level: *level,
                containers,
            };
        }
    }
    Stage::Launched
}

fn next_write(snapshot: &Snapshot<'_>, levels: &[Priority], stage: &Stage) -> Option<Write> {
    let wanted = wanted(snapshot.pod, levels, stage);
    match snapshot.map {
        MapView::Unknown => None,
        MapView::Absent => Some(Write::CreateMap { keys: wanted }),
        MapView::Present(map) => match whose(map, snapshot.pod) {
            Whose::Foreign => None,
            // It goes when its finalizers are done; until then neither a deletion nor a creation helps.
            Whose::EarlierPods if map.is_being_deleted => {
                let uid = map.uid.clone();
                (map.is_labelled && !map.keys.is_empty()).then_some(Write::EmptyMap { uid })
            }
            Whose::EarlierPods => Some(Write::DeleteMap {
                uid: map.uid.clone(),
            }),
            Whose::Ours => {
                let missing: BTreeSet<_> = wanted.difference(&map.keys).copied().collect();
                if missing.is_empty() && map.is_labelled {
                    return nudge(snapshot, levels, &map.keys);
                }
                Some(Write::AddKeys {
                    keys: missing,
                    uid: map.uid.clone(),
                })
            }
        },
    }
}

/// The levels that may be open: all above the one that is waited for, and that one.
fn wanted(pod: &LaunchPod, levels: &[Priority], stage: &Stage) -> BTreeSet<Priority> {
    let lowest = match stage {
        // A container that is started again needs its key, whatever the others do.
        _ if pod.is_completed => None,
        Stage::Waiting { level, .. } => Some(*level),
        Stage::Launched | Stage::Blocked | Stage::Over => None,
    };
    let levels = levels.iter().copied();
    levels
        .filter(|level| lowest.is_none_or(|lowest| *level >= lowest))
        .collect()
}

/// What the kubelet has not been told of the keys that are there.
fn nudge(snapshot: &Snapshot<'_>, levels: &[Priority], keys: &BTreeSet<Priority>) -> Option<Write> {
    let open = || levels.iter().copied().filter(|level| keys.contains(level));
    let (highest, lowest) = (*levels.first()?, open().min()?);
    let is_all_open = open().count() == levels.len();
    let completes = is_all_open && !snapshot.pod.is_completed && have_all_started(snapshot.pod);
    let is_untold = snapshot.pod.told != Some(lowest) && !snapshot.pod.is_completed;
    // The first key is mostly there before the kubelet first looks.
    let is_needed = lowest != highest || has_looked_in_vain(snapshot.pod, highest);
    ((is_untold && is_needed) || completes).then_some(Write::Nudge {
        level: lowest,
        completes,
    })
}

/// By the kubelet's word: who reads that the launch is completed finds every container's start in the same pod's status.
fn have_all_started(pod: &LaunchPod) -> bool {
    let mut containers = pod.containers.iter();
    containers.all(|container| {
        let status = pod.pod.container(&container.name);
        status.is_some_and(|status| status.container_id.is_some())
    })
}

/// Whether the kubelet may start the containers: the pod is on a node, and its init containers are done. What takes long
/// before is no level's doing, and Kubernetes itself says why.
pub fn may_start(pod: &Pod) -> bool {
    pod.node.is_some() && pod.is_initialized
}

fn has_looked_in_vain(pod: &LaunchPod, level: Priority) -> bool {
    let containers = pod.containers.iter();
    let mut of_level = containers.filter(|container| container.priority == level);
    of_level.any(|container| {
        let status = pod.pod.container(&container.name);
        status.is_some_and(|status| is_for_its_key(&pod.pod, status))
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Ours,
    EarlierPods,
    Foreign,
}

fn whose(map: &BarrierMap, pod: &LaunchPod) -> Whose {
    if map.owners.contains(&pod.pod.uid) {
        Whose::Ours
    } else if map.is_labelled || !map.owners.is_empty() {
        Whose::EarlierPods
    } else {
        Whose::Foreign
    }
}

/// A level that takes long is told of.
fn watch_the_clock(plan: &mut Plan, snapshot: &Snapshot<'_>, now: Timestamp) {
    let Stage::Waiting { level, containers } = &plan.stage else {
        return;
    };
    if !may_start(&snapshot.pod.pod) {
        return;
    }
    let since = match snapshot.current {
        Some(current) if current.level == *level => current.since,
        // A pod that was launched before our time may lack a container for any reason.
        Some(_) | None if snapshot.pod.is_completed => return,
        Some(_) | None => now,
    };
    let stuck_at = after(since, snapshot.stuck_after);
    if now >= stuck_at {
        let event = events::stuck(snapshot.pod, *level, containers, snapshot.stuck_after);
        plan.events.push(event);
    } else {
        plan.wake_at = Some(stuck_at);
    }
}

#[cfg(test)]
mod tests;

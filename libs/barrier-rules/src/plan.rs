//! The planner for one pod: at most one write, and the stage of the launch.
//!
//! A level's key is written when every container of higher priority is up; keys are never taken away. After each key the
//! pod is annotated with the lowest open level, which makes the kubelet sync it: by itself the kubelet reads a ConfigMap
//! again after ten seconds and more (facts, measured).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use model::{
    ids::{ContainerId, ContainerName},
    launch::{BarrierMap, LaunchPod, Priority},
    pod::{Pod, PodPhase},
    retry::Doubling,
    time::{Monotonic, Now},
};

use crate::{
    container::{Waiting, is_for_its_key, waiting},
    effect::Write,
    messages::{self, LaunchEvent},
    snapshot::{MapView, Snapshot},
};

/// Pauses between two fetches of a ConfigMap whose end the watch does not show.
const POLL: Doubling = Doubling::new(Duration::from_secs(10), Duration::from_secs(60));

/// What one pod needs now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// At most one; the plan after its answer has the next.
    pub write: Option<Write>,
    pub stage: Stage,
    /// To be published once, by name.
    pub event: Option<LaunchEvent>,
    /// When to plan again if nothing happens before.
    pub wake_at: Option<Monotonic>,
}

/// Progress of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// These containers of the level are not up.
    Waiting {
        level: Priority,
        containers: Vec<Waiting>,
    },
    /// Every level is up.
    Launched,
    /// A foreign ConfigMap has the name of the pod's.
    Blocked,
    /// The pod has ended, or is ending.
    Over,
}

/// Plans for one pod.
pub fn plan(snapshot: &Snapshot<'_>, now: Now) -> Plan {
    let stage = stage_of(snapshot.pod, snapshot.map, snapshot.started);
    let now = now.monotonic;
    let (write, event, wake_at) = match &stage {
        Stage::Over => (None, None, None),
        Stage::Blocked => {
            let event = messages::blocked(snapshot.pod);
            (None, Some(event), Some(next_poll(snapshot, now)))
        }
        Stage::Waiting { .. } | Stage::Launched => {
            let (event, stuck_at) = watch_level(&stage, snapshot, now);
            let poll_at = is_held_by_finalizer(snapshot).then(|| next_poll(snapshot, now));
            let wake_at = stuck_at.into_iter().chain(poll_at).min();
            (next_write(snapshot, &stage), event, wake_at)
        }
    };
    Plan {
        write,
        stage,
        event,
        wake_at,
    }
}

/// The stage of a launch by pod and ConfigMap alone.
pub fn stage(pod: &LaunchPod, map: MapView<'_>) -> Stage {
    stage_of(pod, map, &BTreeMap::new())
}

fn stage_of(
    launch: &LaunchPod,
    map: MapView<'_>,
    started: &BTreeMap<ContainerName, ContainerId>,
) -> Stage {
    let pod = &launch.pod;
    let has_ended = matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed);
    if has_ended || pod.is_being_deleted || launch.containers.is_empty() {
        return Stage::Over;
    }
    if let MapView::Present(map) = map
        && owner(map, launch) == MapOwner::Foreign
    {
        return Stage::Blocked;
    }
    // The highest level that is not up.
    for level in levels(launch) {
        let of_level = launch.containers.iter();
        let of_level = of_level.filter(|container| container.priority == level);
        let containers: Vec<_> = of_level
            .filter_map(|container| waiting(pod, container, started))
            .collect();
        if !containers.is_empty() {
            return Stage::Waiting { level, containers };
        }
    }
    Stage::Launched
}

/// Counted from the last fetch, so that a pod that changes all the time does not put it off.
fn next_poll(snapshot: &Snapshot<'_>, now: Monotonic) -> Monotonic {
    match snapshot.poll {
        Some(poll) => (poll.at + POLL.pause(poll.unchanged_polls)).max(now),
        None => now + POLL.pause(0),
    }
}

/// Highest first.
fn levels(pod: &LaunchPod) -> Vec<Priority> {
    let levels: BTreeSet<_> = pod.containers.iter().map(|it| it.priority).collect();
    levels.into_iter().rev().collect()
}

fn is_held_by_finalizer(snapshot: &Snapshot<'_>) -> bool {
    let MapView::Present(map) = snapshot.map else {
        return false;
    };
    map.is_being_deleted && owner(map, snapshot.pod) == MapOwner::EarlierPod
}

fn next_write(snapshot: &Snapshot<'_>, stage: &Stage) -> Option<Write> {
    let levels = levels(snapshot.pod);
    let wanted = wanted(snapshot.pod, &levels, stage);
    match snapshot.map {
        MapView::Unknown => None,
        MapView::Absent => Some(Write::CreateMap { keys: wanted }),
        MapView::Present(map) => match owner(map, snapshot.pod) {
            MapOwner::Foreign => None,
            // It goes when its finalizers are done; until then neither a deletion nor a creation helps.
            MapOwner::EarlierPod if map.is_being_deleted => {
                let uid = map.uid.clone();
                (map.is_labelled && !map.keys.is_empty()).then_some(Write::EmptyMap { uid })
            }
            MapOwner::EarlierPod => Some(Write::DeleteMap {
                uid: map.uid.clone(),
            }),
            MapOwner::ThisPod => {
                let missing: BTreeSet<_> = wanted.difference(&map.keys).copied().collect();
                if missing.is_empty() && map.is_labelled {
                    return nudge(snapshot.pod, &levels, &map.keys);
                }
                Some(Write::AddKeys {
                    keys: missing,
                    uid: map.uid.clone(),
                })
            }
        },
    }
}

/// The levels that may be open: the one that is waited for, and all above it.
fn wanted(pod: &LaunchPod, levels: &[Priority], stage: &Stage) -> BTreeSet<Priority> {
    let lowest = match stage {
        // A container that is started again needs its key, even if one above it is down.
        Stage::Waiting { level, .. } if !pod.is_completed => Some(*level),
        Stage::Waiting { .. } | Stage::Launched | Stage::Blocked | Stage::Over => None,
    };
    let levels = levels.iter().copied();
    levels
        .filter(|level| lowest.is_none_or(|lowest| *level >= lowest))
        .collect()
}

/// The annotation that the pod lacks for the keys that are there.
fn nudge(pod: &LaunchPod, levels: &[Priority], keys: &BTreeSet<Priority>) -> Option<Write> {
    let open = || levels.iter().copied().filter(|level| keys.contains(level));
    let (highest, lowest) = (*levels.first()?, open().min()?);
    let is_all_open = open().count() == levels.len();
    let completes = is_all_open && !pod.is_completed && have_all_started(pod);
    let is_missing = pod.told != Some(lowest) && !pod.is_completed;
    // The first key is mostly there before the kubelet first reads it.
    let is_needed = lowest != highest || has_missed_its_key(pod, highest);
    ((is_missing && is_needed) || completes).then_some(Write::Nudge {
        level: lowest,
        completes,
    })
}

/// By pod status: a reader of the completion finds every container's start in the same object.
fn have_all_started(pod: &LaunchPod) -> bool {
    let mut containers = pod.containers.iter();
    containers.all(|container| {
        let status = pod.pod.container(&container.name);
        status.is_some_and(|status| status.container_id.is_some())
    })
}

/// True if the kubelet may start the containers: the pod is on a node, and its init containers are done. A delay before
/// that is not caused by a level, and Kubernetes itself reports the reason.
pub(crate) fn may_start(pod: &Pod) -> bool {
    pod.node.is_some() && pod.is_initialized
}

fn has_missed_its_key(pod: &LaunchPod, level: Priority) -> bool {
    let containers = pod.containers.iter();
    let mut of_level = containers.filter(|container| container.priority == level);
    of_level.any(|container| {
        let status = pod.pod.container(&container.name);
        status.is_some_and(|status| is_for_its_key(&pod.pod, status))
    })
}

/// Who a ConfigMap belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MapOwner {
    ThisPod,
    /// Another pod of that name, or none any more.
    EarlierPod,
    /// Neither a pod nor the barrier-manager: it must not be changed.
    Foreign,
}

fn owner(map: &BarrierMap, pod: &LaunchPod) -> MapOwner {
    if map.owners.contains(&pod.pod.uid) {
        MapOwner::ThisPod
    } else if map.is_labelled || !map.owners.is_empty() {
        MapOwner::EarlierPod
    } else {
        MapOwner::Foreign
    }
}

/// The warning about a level that takes too long, or the moment at which it is due.
fn watch_level(
    stage: &Stage,
    snapshot: &Snapshot<'_>,
    now: Monotonic,
) -> (Option<LaunchEvent>, Option<Monotonic>) {
    let Stage::Waiting { level, containers } = stage else {
        return (None, None);
    };
    if !may_start(&snapshot.pod.pod) {
        return (None, None);
    }
    let since = match snapshot.current {
        Some(current) if current.level == *level => current.since,
        // In a pod that was launched under an earlier leader a container may be down for any reason.
        Some(_) | None if snapshot.pod.is_completed => return (None, None),
        Some(_) | None => now,
    };
    let stuck_at = since + snapshot.stuck_after;
    if now < stuck_at {
        return (None, Some(stuck_at));
    }
    let event = messages::stuck(snapshot.pod, *level, containers, snapshot.stuck_after);
    (Some(event), None)
}

#[cfg(test)]
mod tests;

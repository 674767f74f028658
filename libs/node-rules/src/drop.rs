//! Dropping dead instances, so that a kubelet that finds none knows of no back-off.
//!
//! Owns what may be removed and in which order, and which log files stay. Nothing of it is journaled: it may be done as
//! often as it is ordered, and a crash in the middle leaves the fence as it was.

use std::cmp::Reverse;

use model::{
    ids::{ContainerId, ContainerName, OrderId, PodUid},
    order::{Instance, Refusal},
};

use crate::{InstanceState, Record, Stage};

/// How many instances' logs stay. The kubelet reads the restart count from the newest one's name (facts, measured).
const LOGS_KEPT: usize = 2;

/// One instance of a container as the runtime lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedInstance {
    pub container_id: ContainerId,
    pub restart_count: u32,
    /// Nanoseconds since the epoch, as CRI tells it.
    pub created_at: i64,
    pub state: InstanceState,
}

/// A stop in the journal that has not ended: whether it was we who ended its instance is told from what the runtime
/// says of it, so that the instance has to stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedStop {
    pub order: OrderId,
    pub pod_uid: PodUid,
    pub container: ContainerName,
}

/// What has to be removed, in this order: the newest last, so that it fences a repetition.
///
/// # Errors
/// The named instance is not the newest, or has not exited, or a stop of the container has not ended.
pub fn judge_drop(
    named: &Instance,
    unfinished: &[UnfinishedStop],
    mut listed: Vec<ListedInstance>,
) -> Result<Vec<ContainerId>, Refusal> {
    listed.sort_by_key(|instance| (instance.restart_count, instance.created_at));
    let Some(newest) = listed.last() else {
        return Ok(Vec::new()); // An earlier sending of this order has done it.
    };
    if newest.container_id != named.container_id {
        return Err(Refusal::OtherInstance {
            container_id: newest.container_id.clone(),
            restart_count: newest.restart_count,
        });
    }
    if let Some(stop) = unfinished.iter().find(|stop| stop.is_of(named)) {
        return Err(Refusal::StopUnfinished {
            order: stop.order.clone(),
        });
    }
    match newest.state {
        InstanceState::Alive => Err(Refusal::StillRunning),
        InstanceState::Exited => {
            let dead = listed
                .into_iter()
                .filter(|instance| instance.state == InstanceState::Exited);
            Ok(dead.map(|instance| instance.container_id).collect())
        }
    }
}

// === impl UnfinishedStop ===

impl UnfinishedStop {
    /// The stop of a journaled order; `None` when it has ended.
    pub(crate) fn of(record: &Record) -> Option<Self> {
        let instance = &record.order.instance;
        match record.stage {
            Stage::Queued | Stage::Begun { .. } | Stage::HookDone { .. } => Some(Self {
                order: record.order.id.clone(),
                pod_uid: instance.pod_uid.clone(),
                container: instance.container.clone(),
            }),
            Stage::Finished { .. } => None,
        }
    }

    fn is_of(&self, instance: &Instance) -> bool {
        self.pod_uid == instance.pod_uid && self.container == instance.container
    }
}

/// The files of a container's log folder that are nobody's any more: `<n>.log` and its rotations
/// `<n>.log.<time>[.gz]` but for the newest instances'.
pub fn logs_to_remove(names: &[String]) -> Vec<&String> {
    let mut counts: Vec<u32> = names.iter().filter_map(|name| restart_of(name)).collect();
    counts.sort_by_key(|count| Reverse(*count));
    counts.dedup();
    let Some(oldest_kept) = counts.get(LOGS_KEPT - 1) else {
        return Vec::new();
    };
    let is_old = |name: &&String| restart_of(name).is_some_and(|count| count < *oldest_kept);
    names.iter().filter(is_old).collect()
}

/// Whose log a file is; `None` for a file that is no log.
fn restart_of(name: &str) -> Option<u32> {
    let (count, rest) = name.split_once('.')?;
    let is_log = rest == "log" || rest.starts_with("log.");
    is_log.then(|| count.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(container_id: &str) -> Instance {
        Instance {
            namespace: "shop".into(),
            pod: "web".into(),
            pod_uid: "uid".into(),
            container: "app".into(),
            container_id: container_id.into(),
            restart_count: 2,
        }
    }

    fn listed(container_id: &str, restart_count: u32, state: InstanceState) -> ListedInstance {
        ListedInstance {
            container_id: container_id.into(),
            restart_count,
            created_at: i64::from(restart_count),
            state,
        }
    }

    fn check(listed: Vec<ListedInstance>, expected: Result<&[&str], Refusal>) {
        let judged = judge_drop(&named("c"), &[], listed);
        let expected = expected.map(|ids| ids.iter().map(|id| ContainerId::new(*id)).collect());
        assert_eq!(judged, expected);
    }

    #[test]
    fn all_dead_instances_go_and_the_newest_last() {
        use InstanceState::Exited;
        let all = vec![
            listed("c", 2, Exited),
            listed("a", 0, Exited),
            listed("b", 1, Exited),
        ];
        check(all, Ok(&["a", "b", "c"]));
        check(Vec::new(), Ok(&[]));
    }

    #[test]
    fn only_the_named_dead_newest_instance_allows_it() {
        use InstanceState::{Alive, Exited};
        check(vec![listed("c", 2, Alive)], Err(Refusal::StillRunning));
        let other = Refusal::OtherInstance {
            container_id: "d".into(),
            restart_count: 3,
        };
        check(
            vec![listed("c", 2, Exited), listed("d", 3, Alive)],
            Err(other),
        );
    }

    #[test]
    fn an_unfinished_stop_of_the_container_forbids_it() {
        let stop = |pod_uid: &str, container: &str| UnfinishedStop {
            order: "stop/1/app".into(),
            pod_uid: pod_uid.into(),
            container: container.into(),
        };
        let judge = |stop: UnfinishedStop, listed| judge_drop(&named("c"), &[stop], listed);
        let dead = || vec![listed("c", 2, InstanceState::Exited)];
        let unfinished = Refusal::StopUnfinished {
            order: "stop/1/app".into(),
        };
        assert_eq!(judge(stop("uid", "app"), dead()), Err(unfinished));
        assert_eq!(judge(stop("uid", "proxy"), dead()), Ok(vec!["c".into()]));
        assert_eq!(judge(stop("other", "app"), dead()), Ok(vec!["c".into()]));
        assert_eq!(judge(stop("uid", "app"), Vec::new()), Ok(Vec::new()));
    }

    #[test]
    fn the_newest_two_instances_keep_their_logs() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let check = |given: &[&str], expected: &[&str]| {
            let given = names(given);
            let removed: Vec<String> = logs_to_remove(&given).into_iter().cloned().collect();
            assert_eq!(removed, names(expected));
        };
        check(&[], &[]);
        check(&["0.log"], &[]);
        check(&["9.log", "10.log"], &[]);
        check(&["9.log", "10.log", "11.log"], &["9.log"]);
        check(
            &[
                "0.log",
                "0.log.20260101-000000.gz",
                "1.log",
                "2.log",
                "2.log.20260101-000000",
            ],
            &["0.log", "0.log.20260101-000000.gz"],
        );
        check(&["x.log", "1.txt", "core", "4.log", "5.log", "-1.log"], &[]);
    }
}

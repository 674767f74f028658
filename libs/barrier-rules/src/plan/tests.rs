//! One pod at a time: what is written, and what is waited for.

mod launches;

use model::pod::{ContainerState, RestartPolicy};
use testkit::{LaunchPodBuilder, at, barrier_map, launch_pod, monotonic, priorities};

use super::*;
use crate::{CurrentLevel, MapPoll};

const STUCK_AFTER: Duration = Duration::from_secs(60);

const NAMES: [&str; 7] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6"];

fn second(second: u64) -> Monotonic {
    monotonic(second * 1_000)
}

fn waiting_for(reason: &str, message: &str) -> ContainerState {
    ContainerState::Waiting {
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
    }
}

fn running() -> ContainerState {
    ContainerState::Running { started_at: None }
}

fn ended(exit_code: i32) -> ContainerState {
    let reason = Some("Error".to_owned());
    ContainerState::Terminated { exit_code, reason }
}

/// One pod and its surroundings.
struct Case {
    pod: LaunchPodBuilder,
    /// `None`: the watch has not listed.
    map: Option<Option<BarrierMap>>,
    started: BTreeMap<ContainerName, ContainerId>,
    current: Option<CurrentLevel>,
    poll: Option<MapPoll>,
}

impl Case {
    /// Containers `c0`, `c1` … of these priorities, on a node, none started.
    fn new(priorities: &[i32]) -> Self {
        let containers = NAMES.into_iter().zip(priorities.iter().copied());
        Self {
            pod: launch_pod(&containers.collect::<Vec<_>>()),
            map: Some(None),
            started: BTreeMap::new(),
            current: None,
            poll: None,
        }
    }

    fn open(mut self, priorities: &[i32]) -> Self {
        self.map = Some(Some(barrier_map(priorities)));
        self
    }

    fn map(mut self, change: impl FnOnce(&mut BarrierMap)) -> Self {
        if let Some(Some(map)) = &mut self.map {
            change(map);
        }
        self
    }

    fn shows(mut self, container: &str, state: ContainerState, is_ready: bool) -> Self {
        self.pod = self.pod.shows(container, state, is_ready);
        self
    }

    fn up(self, container: &str) -> Self {
        self.shows(container, running(), true)
    }

    fn started(mut self, container: &str) -> Self {
        let id = ContainerId::new(format!("{container}-0"));
        self.started.insert(container.into(), id);
        self
    }

    fn nudged(mut self, priority: i32) -> Self {
        self.pod = self.pod.nudged(priority);
        self
    }

    fn pod(mut self, change: impl FnOnce(&mut LaunchPod)) -> Self {
        self.pod = self.pod.with(change);
        self
    }

    fn completed(self) -> Self {
        self.pod(|pod| pod.is_completed = true)
    }

    fn since(mut self, level: i32, since: u64) -> Self {
        let level = Priority::new(level);
        let since = second(since);
        self.current = Some(CurrentLevel { level, since });
        self
    }

    fn plan_at(&self, second: u64) -> Plan {
        let pod = self.pod.clone().build();
        let snapshot = Snapshot {
            pod: &pod,
            map: match &self.map {
                None => MapView::Unknown,
                Some(None) => MapView::Absent,
                Some(Some(map)) => MapView::Present(map),
            },
            started: &self.started,
            current: self.current,
            poll: self.poll,
            stuck_after: STUCK_AFTER,
        };
        plan(&snapshot, at(second * 1_000))
    }

    fn plan(&self) -> Plan {
        self.plan_at(0)
    }

    #[track_caller]
    fn writes(&self, expected: impl Into<Option<Write>>) {
        assert_eq!(self.plan().write, expected.into());
    }
}

fn create(of: &[i32]) -> Write {
    Write::CreateMap {
        keys: priorities(of),
    }
}

fn add(of: &[i32]) -> Write {
    Write::AddKeys {
        keys: priorities(of),
        uid: "map-uid".to_owned(),
    }
}

fn nudge(level: i32) -> Write {
    Write::Nudge {
        level: Priority::new(level),
        completes: false,
    }
}

fn complete(level: i32) -> Write {
    Write::Nudge {
        level: Priority::new(level),
        completes: true,
    }
}

#[test]
fn levels_open_from_the_highest_down() {
    let new = || Case::new(&[0, 10, 5]);
    new().writes(create(&[10]));
    new().open(&[10]).writes(None);
    let first = || new().open(&[10]).up("c1");
    first().writes(add(&[5]));
    let second = || new().open(&[10, 5]).up("c1");
    second().writes(nudge(5));
    second().nudged(5).writes(None);
    second().nudged(5).up("c2").writes(add(&[0]));
    let last = || new().open(&[10, 5, 0]).up("c1").up("c2").nudged(5);
    last().writes(nudge(0));
    last().nudged(0).writes(None);
    // A start in pod status completes the launch, readiness is not needed.
    last().nudged(0).started("c0").writes(None);
    last()
        .nudged(0)
        .shows("c0", running(), false)
        .writes(complete(0));
    last().nudged(0).up("c0").completed().writes(None);
}

#[test]
fn no_level_is_stuck_before_its_containers_may_start() {
    let case = |change: fn(&mut LaunchPod)| {
        let case = Case::new(&[1, 0]).open(&[1]).pod(change).since(1, 0);
        case.plan_at(100).event.iter().count()
    };
    assert_eq!(case(|_| {}), 1);
    assert_eq!(case(|pod| pod.pod.node = None), 0);
    assert_eq!(case(|pod| pod.pod.is_initialized = false), 0);
}

#[test]
fn all_containers_of_a_level_have_to_be_up() {
    let new = || Case::new(&[1, 1, 0]).open(&[1]);
    new().up("c0").writes(None);
    new().up("c0").shows("c1", running(), false).writes(None);
    new().up("c0").up("c1").writes(add(&[0]));
}

#[test]
fn the_first_key_needs_no_nudge_unless_the_kubelet_missed_it() {
    let case = |reason: &str, message: &str| {
        let case = Case::new(&[1, 0]).open(&[1]);
        case.shows("c0", waiting_for(reason, message), false)
    };
    case("ContainerCreating", "").writes(None);
    case("CreateContainerConfigError", "secret \"x\" not found").writes(None);
    let missed = || {
        case(
            "CreateContainerConfigError",
            "configmap \"web-barrier\" not found",
        )
    };
    missed().writes(nudge(1));
    missed().nudged(1).writes(None);
}

#[test]
fn levels_that_are_up_already_open_in_one_write() {
    Case::new(&[3, 2, 1])
        .up("c0")
        .up("c1")
        .writes(create(&[3, 2, 1]));
    Case::new(&[3, 2, 1])
        .open(&[3])
        .up("c0")
        .up("c1")
        .writes(add(&[2, 1]));
}

#[test]
fn a_nodes_report_is_enough_if_the_level_needs_a_start_only() {
    let new = || Case::new(&[1, 0]).open(&[1]);
    new().started("c0").writes(add(&[0]));
    let probed = new()
        .started("c0")
        .pod(|pod| pod.containers[0].needs_status = true);
    probed.writes(None);
    // The kubelet knows better: that instance has ended.
    new()
        .started("c0")
        .shows("c0", ended(1), false)
        .writes(None);
    new().started("c9").writes(None);
}

#[test]
fn a_container_that_is_not_restarted_is_not_waited_for() {
    let new = |policy, exit_code| {
        let case = Case::new(&[1, 0])
            .open(&[1])
            .shows("c0", ended(exit_code), false);
        case.pod(|pod| pod.pod.containers[0].restart_policy = policy)
    };
    new(RestartPolicy::Always, 0).writes(None);
    new(RestartPolicy::OnFailure, 0).writes(add(&[0]));
    new(RestartPolicy::OnFailure, 1).writes(None);
    new(RestartPolicy::Never, 1).writes(add(&[0]));
}

#[test]
fn open_levels_stay_open_when_one_above_falls_down() {
    let case = Case::new(&[3, 2, 1]).open(&[3, 2]).nudged(2);
    let fallen = case.shows("c0", ended(1), false).up("c1");
    fallen.writes(None);
    assert!(
        matches!(fallen.plan().stage, Stage::Waiting { level, .. } if level == Priority::new(3))
    );
}

#[test]
fn a_lost_map_is_created_again() {
    Case::new(&[3, 2, 1]).up("c0").writes(create(&[3, 2]));
    Case::new(&[3, 2, 1]).completed().writes(create(&[3, 2, 1]));
    // A key taken out by hand as well.
    Case::new(&[3, 2, 1])
        .completed()
        .open(&[3])
        .writes(add(&[2, 1]));
}

#[test]
fn a_map_of_another_owner_gets_no_keys() {
    let leftover = || {
        Case::new(&[1, 0])
            .open(&[1, 0])
            .map(|map| map.owners = vec!["old".into()])
    };
    let delete = Write::DeleteMap {
        uid: "map-uid".to_owned(),
    };
    leftover().writes(delete.clone());
    leftover()
        .map(|map| map.is_labelled = false)
        .writes(delete.clone());
    leftover().map(|map| map.owners.clear()).writes(delete);
    // Deleted already; a finalizer keeps it.
    let held = leftover().map(|map| map.is_being_deleted = true);
    let uid = "map-uid".to_owned();
    assert_eq!(held.plan().write, Some(Write::EmptyMap { uid }));
    let held = held.map(|map| map.keys.clear());
    assert_eq!(
        (held.plan().write, held.plan().wake_at),
        (None, Some(second(10)))
    );

    let foreign = leftover().map(|map| {
        map.owners.clear();
        map.is_labelled = false;
    });
    let plan = foreign.plan();
    assert_eq!((&plan.write, &plan.stage), (&None, &Stage::Blocked));
    let message = plan.event.unwrap().message;
    assert!(message.contains("web-barrier"), "{message}");

    // Ours, but the watch would not see it.
    let unlabelled = Case::new(&[1, 0])
        .open(&[1])
        .map(|map| map.is_labelled = false);
    unlabelled.writes(add(&[]));
}

#[test]
fn a_foreign_map_is_polled_with_growing_pauses() {
    let mut blocked = Case::new(&[1]).open(&[]).map(|map| {
        map.owners.clear();
        map.is_labelled = false;
    });
    let mut wake_at = |unchanged_polls, now| {
        blocked.poll = Some(MapPoll {
            at: second(1_000),
            unchanged_polls,
        });
        blocked.plan_at(now).wake_at
    };
    for (unchanged, pause) in [(0, 10), (1, 20), (2, 40), (3, 60), (4, 60), (u32::MAX, 60)] {
        // Other events in between do not put the poll off.
        for now in [1_000, 1_001, 999 + pause] {
            assert_eq!(wake_at(unchanged, now), Some(second(1_000 + pause)));
        }
        assert_eq!(wake_at(unchanged, 2_000), Some(second(2_000)));
    }
}

#[test]
fn nothing_is_written_for_a_pod_that_ends_or_before_the_maps_are_listed() {
    Case::new(&[1, 0])
        .pod(|pod| pod.pod.is_being_deleted = true)
        .writes(None);
    for phase in [PodPhase::Succeeded, PodPhase::Failed] {
        let case = Case::new(&[1, 0]).pod(|pod| pod.pod.phase = phase);
        assert_eq!(case.plan().stage, Stage::Over);
        case.writes(None);
    }
    assert_eq!(Case::new(&[]).plan().stage, Stage::Over);
    let mut unseen = Case::new(&[1, 0]);
    unseen.map = None;
    unseen.writes(None);
}

#[test]
fn a_stuck_level_is_reported_with_its_containers_and_reasons() {
    let pull = waiting_for("ImagePullBackOff", "Back-off pulling image \"nope\"");
    let case = Case::new(&[1, 1, 0]).open(&[1]).since(1, 100);
    let case = case.shows("c0", pull, false).shows("c1", running(), false);
    assert_eq!(
        (case.plan_at(159).event, case.plan_at(159).wake_at),
        (None, Some(second(160)))
    );
    let event = case.plan_at(160).event.unwrap();
    assert_eq!(event.name, "launch-pod-uid-stuck-0");
    assert_eq!(
        event.message,
        "launch level p_1 is not up after 60 s: container c0 is waiting: ImagePullBackOff: Back-off pulling image \
         \"nope\"; container c1 is running, not ready"
    );
    // The time starts with each level.
    let next = case.up("c0").up("c1");
    assert_eq!(
        (next.plan_at(160).event, next.plan_at(160).wake_at),
        (None, Some(second(220)))
    );
}

#[test]
fn a_pod_without_a_node_or_one_launched_long_ago_is_not_stuck() {
    let unscheduled = Case::new(&[1, 0])
        .open(&[1])
        .since(1, 0)
        .pod(|pod| pod.pod.node = None);
    assert_eq!(unscheduled.plan_at(1000).event, None);
    let crashed = || {
        let crashed = Case::new(&[1, 0]).open(&[1, 0]).completed();
        crashed.shows("c0", ended(1), false).up("c1")
    };
    assert_eq!(
        (
            crashed().plan_at(1000).event,
            crashed().plan_at(1000).wake_at
        ),
        (None, None)
    );
    // The last level of a launch that was seen is one like the others.
    let last = Case::new(&[1, 0])
        .open(&[1, 0])
        .completed()
        .since(0, 0)
        .up("c0")
        .shows("c1", running(), false);
    assert_eq!(
        last.plan_at(1000).event.unwrap().name,
        "launch-pod-uid-stuck-1"
    );
}

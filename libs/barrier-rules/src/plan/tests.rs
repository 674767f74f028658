//! One pod at a time: what is written, and what is waited for.

mod launches;

use std::collections::BTreeMap;

use model::{
    ids::{ContainerId, ContainerName, RuntimeContainerId},
    launch::LaunchContainer,
    pod::{ContainerState, ContainerStatus, RestartPolicy},
};

use super::*;
use crate::{CurrentLevel, Looked};

const STUCK_AFTER: Duration = Duration::from_secs(60);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn keys(keys: &[i32]) -> BTreeSet<Priority> {
    keys.iter().copied().map(Priority::new).collect()
}

fn status(name: &str, state: ContainerState, is_ready: bool) -> ContainerStatus {
    let is_created = !matches!(state, ContainerState::Waiting { .. });
    ContainerStatus {
        name: name.into(),
        container_id: is_created.then(|| RuntimeContainerId {
            runtime: "containerd".to_owned(),
            id: ContainerId::new(format!("{name}-1")),
        }),
        restart_count: 0,
        is_ready,
        state,
        restart_policy: RestartPolicy::Always,
        is_sidecar: false,
    }
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

/// One pod and what is known around it, to be changed word by word.
struct Case {
    pod: LaunchPod,
    map: MapView,
    started: BTreeMap<ContainerName, ContainerId>,
    current: Option<CurrentLevel>,
    looked: Option<Looked>,
}

impl Case {
    /// Containers `c0`, `c1` … of these priorities, on a node, none begun.
    fn new(priorities: &[i32]) -> Self {
        let containers = priorities.iter().enumerate();
        let containers = containers.map(|(index, priority)| LaunchContainer {
            name: ContainerName::new(format!("c{index}")),
            priority: Priority::new(*priority),
            needs_status: false,
        });
        let pod = Pod {
            key: model::ids::PodKey {
                namespace: "shop".into(),
                name: "web".into(),
            },
            uid: "u".into(),
            node: Some("node-1".into()),
            phase: PodPhase::Pending,
            restart_policy: RestartPolicy::Always,
            is_being_deleted: false,
            containers: Vec::new(),
            version: "1".to_owned(),
            gate: None,
            are_containers_ready: false,
            is_initialized: true,
            static_uid: None,
            host_address: None,
        };
        let pod = LaunchPod {
            pod,
            containers: containers.collect(),
            told: None,
            is_completed: false,
            trace_parent: None,
        };
        Self {
            pod,
            map: MapView::Absent,
            started: BTreeMap::new(),
            current: None,
            looked: None,
        }
    }

    fn open(mut self, priorities: &[i32]) -> Self {
        self.map = MapView::Present(BarrierMap {
            uid: "m".to_owned(),
            version: "7".to_owned(),
            owners: vec!["u".into()],
            is_labelled: true,
            is_being_deleted: false,
            keys: keys(priorities),
        });
        self
    }

    fn map(mut self, change: impl FnOnce(&mut BarrierMap)) -> Self {
        if let MapView::Present(map) = &mut self.map {
            change(map);
        }
        self
    }

    fn shows(mut self, container: &str, state: ContainerState, is_ready: bool) -> Self {
        let statuses = &mut self.pod.pod.containers;
        statuses.retain(|status| status.name.as_str() != container);
        statuses.push(status(container, state, is_ready));
        self
    }

    fn up(self, container: &str) -> Self {
        self.shows(container, running(), true)
    }

    fn started(mut self, container: &str) -> Self {
        let id = ContainerId::new(format!("{container}-1"));
        self.started.insert(container.into(), id);
        self
    }

    fn told(mut self, priority: i32) -> Self {
        self.pod.told = Some(Priority::new(priority));
        self
    }

    fn pod(mut self, change: impl FnOnce(&mut LaunchPod)) -> Self {
        change(&mut self.pod);
        self
    }

    fn completed(self) -> Self {
        self.pod(|pod| pod.is_completed = true)
    }

    fn since(mut self, level: i32, seconds: i64) -> Self {
        let level = Priority::new(level);
        let since = at(seconds);
        self.current = Some(CurrentLevel { level, since });
        self
    }

    fn plan_at(&self, now: i64) -> Plan {
        let snapshot = Snapshot {
            pod: &self.pod,
            map: &self.map,
            started: &self.started,
            current: self.current,
            looked: self.looked,
            stuck_after: STUCK_AFTER,
        };
        plan(&snapshot, at(now))
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
    Write::CreateMap { keys: keys(of) }
}

fn add(of: &[i32]) -> Write {
    Write::AddKeys {
        keys: keys(of),
        uid: "m".to_owned(),
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
    second().told(5).writes(None);
    second().told(5).up("c2").writes(add(&[0]));
    let last = || new().open(&[10, 5, 0]).up("c1").up("c2").told(5);
    last().writes(nudge(0));
    last().told(0).writes(None);
    // Started is enough: whoever reads it finds each container's start, and need not be ready for it.
    last().told(0).started("c0").writes(None);
    last()
        .told(0)
        .shows("c0", running(), false)
        .writes(complete(0));
    last().told(0).up("c0").completed().writes(None);
}

#[test]
fn what_goes_on_before_the_containers_may_start_makes_no_level_stuck() {
    let case = |change: fn(&mut LaunchPod)| {
        let mut case = Case::new(&[1, 0]).open(&[1]).pod(change);
        let level = Priority::new(1);
        case.current = Some(CurrentLevel {
            level,
            since: at(0),
        });
        case.plan_at(100).events.len()
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
fn the_first_key_needs_no_nudge_unless_the_kubelet_looked_before() {
    let case = |reason: &str, message: &str| {
        let case = Case::new(&[1, 0]).open(&[1]);
        case.shows("c0", waiting_for(reason, message), false)
    };
    case("ContainerCreating", "").writes(None);
    case("CreateContainerConfigError", "secret \"x\" not found").writes(None);
    let in_vain = || {
        case(
            "CreateContainerConfigError",
            "configmap \"web-barrier\" not found",
        )
    };
    in_vain().writes(nudge(1));
    in_vain().told(1).writes(None);
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
fn the_nodes_word_is_enough_where_a_start_is_all_that_counts() {
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
fn who_ended_for_good_is_not_waited_for() {
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
    let case = Case::new(&[3, 2, 1]).open(&[3, 2]).told(2);
    let fallen = case.shows("c0", ended(1), false).up("c1");
    fallen.writes(None);
    assert!(
        matches!(fallen.plan().stage, Stage::Waiting { level, .. } if level == Priority::new(3))
    );
}

#[test]
fn a_lost_map_is_made_again() {
    Case::new(&[3, 2, 1]).up("c0").writes(create(&[3, 2]));
    Case::new(&[3, 2, 1]).completed().writes(create(&[3, 2, 1]));
    // A key taken out by hand as well.
    Case::new(&[3, 2, 1])
        .completed()
        .open(&[3])
        .writes(add(&[2, 1]));
}

#[test]
fn a_map_of_somebody_else_is_not_ours_to_fill() {
    let leftover = || {
        Case::new(&[1, 0])
            .open(&[1, 0])
            .map(|map| map.owners = vec!["old".into()])
    };
    let delete = Write::DeleteMap {
        uid: "m".to_owned(),
    };
    leftover().writes(delete.clone());
    leftover()
        .map(|map| map.is_labelled = false)
        .writes(delete.clone());
    leftover().map(|map| map.owners.clear()).writes(delete);
    // Asked for already; a finalizer keeps it.
    let held = leftover().map(|map| map.is_being_deleted = true);
    let uid = "m".to_owned();
    assert_eq!(held.plan().write, Some(Write::EmptyMap { uid }));
    let held = held.map(|map| map.keys.clear());
    assert_eq!(
        (held.plan().write, held.plan().wake_at),
        (None, Some(at(10)))
    );

    let foreign = leftover().map(|map| {
        map.owners.clear();
        map.is_labelled = false;
    });
    let plan = foreign.plan();
    assert_eq!((&plan.write, &plan.stage), (&None, &Stage::Blocked));
    assert!(
        plan.events[0].message.contains("web-barrier"),
        "{:?}",
        plan.events
    );

    // Ours, but the watch would not see it.
    let unlabelled = Case::new(&[1, 0])
        .open(&[1])
        .map(|map| map.is_labelled = false);
    unlabelled.writes(add(&[]));
}

#[test]
fn a_map_in_the_way_is_looked_for_less_and_less_often() {
    let mut blocked = Case::new(&[1]).open(&[]).map(|map| {
        map.owners.clear();
        map.is_labelled = false;
    });
    let mut look = |in_vain, now| {
        blocked.looked = Some(Looked {
            at: at(1_000),
            in_vain,
        });
        blocked.plan_at(now).wake_at
    };
    for (in_vain, pause) in [(0, 10), (1, 20), (2, 40), (3, 60), (4, 60), (u32::MAX, 60)] {
        // Whenever and however often it is planned meanwhile.
        for now in [1_000, 1_001, 999 + pause] {
            assert_eq!(look(in_vain, now), Some(at(1_000 + pause)));
        }
        // Late, and after the clock was set back.
        for now in [2_000, 10] {
            assert_eq!(look(in_vain, now), Some(at(now)));
        }
    }
}

#[test]
fn nothing_is_written_for_a_pod_that_ends_or_of_a_map_not_seen_yet() {
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
    unseen.map = MapView::Unknown;
    unseen.writes(None);
}

#[test]
fn a_stuck_level_is_told_with_its_containers_and_reasons() {
    let pull = waiting_for("ImagePullBackOff", "Back-off pulling image \"nope\"");
    let case = Case::new(&[1, 1, 0]).open(&[1]).since(1, 100);
    let case = case.shows("c0", pull, false).shows("c1", running(), false);
    assert_eq!(
        (case.plan_at(159).events, case.plan_at(159).wake_at),
        (vec![], Some(at(160)))
    );
    let events = case.plan_at(160).events;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].name, "launch-u-stuck-0");
    assert_eq!(
        events[0].message,
        "launch level p_1 is not up after 60 s: container c0 is waiting: ImagePullBackOff: Back-off pulling image \
         \"nope\"; container c1 is running, not ready"
    );
    // The clock begins anew with each level.
    let next = case.up("c0").up("c1");
    assert_eq!(
        (next.plan_at(160).events, next.plan_at(160).wake_at),
        (vec![], Some(at(220)))
    );
}

#[test]
fn a_pod_without_a_node_or_one_launched_long_ago_is_not_stuck() {
    let homeless = Case::new(&[1, 0])
        .open(&[1])
        .since(1, 0)
        .pod(|pod| pod.pod.node = None);
    assert_eq!(homeless.plan_at(1000).events, []);
    let crashed = || {
        let crashed = Case::new(&[1, 0]).open(&[1, 0]).completed();
        crashed.shows("c0", ended(1), false).up("c1")
    };
    assert_eq!(
        (
            crashed().plan_at(1000).events,
            crashed().plan_at(1000).wake_at
        ),
        (vec![], None)
    );
    // The last level of a launch that was seen is one like the others.
    let last = Case::new(&[1, 0])
        .open(&[1, 0])
        .completed()
        .since(0, 0)
        .up("c0")
        .shows("c1", running(), false);
    assert_eq!(last.plan_at(1000).events[0].name, "launch-u-stuck-1");
}

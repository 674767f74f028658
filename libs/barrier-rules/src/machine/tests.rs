//! The machine, event by event: requests, answers, lists and deadlines.

mod launches;
mod world;

use model::{launch::Started, pod::ContainerState};
use testkit::{LaunchPodBuilder, at, barrier_map, launch_pod, monotonic, priorities, web};

use super::*;
use crate::Write;

const STUCK_AFTER: Duration = Duration::from_secs(60);

/// A pod with one container, `app`, of priority 0.
fn single() -> LaunchPodBuilder {
    launch_pod(&[("app", 0)])
}

fn seen(pod: LaunchPodBuilder) -> Event {
    Event::PodSeen(Box::new(pod.build()))
}

fn map_seen(map: BarrierMap) -> Event {
    Event::MapSeen { pod: web(), map }
}

/// A ConfigMap without a label and without owners.
fn foreign_map() -> BarrierMap {
    BarrierMap {
        uid: "foreign".to_owned(),
        owners: Vec::new(),
        is_labelled: false,
        ..barrier_map(&[])
    }
}

fn written(result: WriteResult) -> Event {
    Event::Written {
        pod: web(),
        uid: "pod-uid".into(),
        result,
    }
}

fn fetched(result: FetchResult) -> Event {
    Event::Fetched {
        pod: web(),
        uid: "pod-uid".into(),
        result,
    }
}

/// A machine whose lists were empty.
fn listed() -> Machine {
    let mut machine = Machine::new(STUCK_AFTER);
    for event in [
        Event::PodListBegun,
        Event::PodListEnded,
        Event::MapListBegun,
        Event::MapListEnded,
    ] {
        machine.on_event(event, at(0));
    }
    machine
}

impl Machine {
    /// The requests among the effects of an event.
    fn requests(&mut self, event: Event, now: u64) -> Vec<Request> {
        let effects = self.on_event(event, at(now));
        let requests = effects
            .into_iter()
            .filter_map(|effect| match effect.action {
                Action::Write(_) => Some(Request::Writing),
                Action::FetchMap => Some(Request::Fetching),
                Action::PublishEvent(_)
                | Action::StartAccepted
                | Action::LaunchBegun { .. }
                | Action::LevelBegun { .. }
                | Action::LevelEnded { .. }
                | Action::LaunchEnded { .. } => None,
            });
        requests.collect()
    }

    /// The writes among the effects of an event.
    fn writes(&mut self, event: Event, now: u64) -> Vec<Write> {
        let effects = self.on_event(event, at(now));
        let writes = effects
            .into_iter()
            .filter_map(|effect| match effect.action {
                Action::Write(write) => Some(write),
                Action::FetchMap
                | Action::PublishEvent(_)
                | Action::StartAccepted
                | Action::LaunchBegun { .. }
                | Action::LevelBegun { .. }
                | Action::LevelEnded { .. }
                | Action::LaunchEnded { .. } => None,
            });
        writes.collect()
    }

    /// The names of the Kubernetes events among the effects of an event.
    fn published(&mut self, event: Event, now: u64) -> Vec<String> {
        let effects = self.on_event(event, at(now));
        let names = effects
            .into_iter()
            .filter_map(|effect| match effect.action {
                Action::PublishEvent(event) => Some(event.name),
                Action::Write(_)
                | Action::FetchMap
                | Action::StartAccepted
                | Action::LaunchBegun { .. }
                | Action::LevelBegun { .. }
                | Action::LevelEnded { .. }
                | Action::LaunchEnded { .. } => None,
            });
        names.collect()
    }
}

/// A machine whose pod is blocked by a foreign ConfigMap, fetched after one conflict.
fn blocked() -> Machine {
    let mut machine = listed();
    assert_eq!(machine.requests(seen(single()), 0), [Request::Writing]);
    let conflict = written(WriteResult::MapConflict);
    assert_eq!(machine.requests(conflict, 0), [Request::Fetching]);
    let found = fetched(FetchResult::Found(foreign_map()));
    assert_eq!(machine.published(found, 0), ["launch-pod-uid-blocked"]);
    machine
}

#[test]
fn nothing_is_written_before_the_maps_are_listed() {
    let mut machine = Machine::new(STUCK_AFTER);
    machine.on_event(Event::MapListBegun, at(0));
    assert_eq!(machine.writes(seen(single()), 0), []);
    let other = map_seen(barrier_map(&[0]));
    let nudge = machine.writes(other, 0);
    assert_eq!(nudge, [], "the first key needs no nudge");
    let mut machine = Machine::new(STUCK_AFTER);
    machine.on_event(Event::MapListBegun, at(0));
    machine.on_event(seen(single()), at(0));
    let keys = priorities(&[0]);
    let create = Write::CreateMap { keys };
    assert_eq!(machine.writes(Event::MapListEnded, 0), [create]);
}

#[test]
fn a_blocked_pod_has_one_deadline_however_often_it_changes() {
    let mut machine = blocked();
    for version in 2..1_400 {
        let pod = single().version(&version.to_string());
        assert_eq!(machine.on_event(seen(pod), at(version)), []);
        assert_eq!(machine.next_deadline(), Some(monotonic(10_000)));
    }
    assert_eq!(machine.wakes.len(), 1);
}

#[test]
fn a_blocked_pod_costs_one_fetch_per_deadline() {
    let mut machine = blocked();
    let mut now = 0;
    for pause in [10_000, 20_000, 40_000, 60_000, 60_000] {
        now += pause;
        assert_eq!(machine.next_deadline(), Some(monotonic(now)));
        assert_eq!(machine.requests(Event::Tick, now - 1), []);
        assert_eq!(machine.requests(Event::Tick, now), [Request::Fetching]);
        let found = fetched(FetchResult::Found(foreign_map()));
        assert_eq!(machine.on_event(found, at(now)), []);
        assert_eq!(machine.wakes.len(), 1);
    }
    // Another foreign ConfigMap starts the pauses from the first.
    machine.on_event(Event::Tick, at(now + 60_000));
    let other = BarrierMap {
        uid: "other".to_owned(),
        ..foreign_map()
    };
    machine.on_event(fetched(FetchResult::Found(other)), at(now + 60_000));
    assert_eq!(machine.next_deadline(), Some(monotonic(now + 70_000)));
    // The pod's end is the end of its deadline and of the interest in the ConfigMap.
    let (pod, uid) = (web(), "pod-uid".into());
    machine.on_event(Event::PodGone { pod, uid }, at(now));
    assert_eq!(machine.next_deadline(), None);
    assert_eq!(machine.maps.view(&web()), crate::MapView::Absent);
}

#[test]
fn a_name_that_is_free_again_is_used_at_the_next_fetch() {
    let mut machine = blocked();
    machine.on_event(Event::Tick, at(10_000));
    let writes = machine.writes(fetched(FetchResult::Absent), 10_000);
    let keys = priorities(&[0]);
    assert_eq!(writes, [Write::CreateMap { keys }]);
}

#[test]
fn the_first_conflict_is_planned_with_and_the_second_waits() {
    let mut machine = listed();
    machine.on_event(seen(single()), at(0));
    // The ConfigMap was deleted between the write and the fetch, each time.
    machine.on_event(written(WriteResult::MapConflict), at(0));
    let absent = || fetched(FetchResult::Absent);
    assert_eq!(machine.requests(absent(), 0), [Request::Writing]);
    let mut now = 0;
    for pause in [1_000, 2_000, 4_000] {
        let conflict = written(WriteResult::MapConflict);
        assert_eq!(machine.requests(conflict, now), [Request::Fetching]);
        assert_eq!(machine.requests(absent(), now), []);
        now += pause;
        assert_eq!(machine.next_deadline(), Some(monotonic(now)));
        assert_eq!(machine.requests(Event::Tick, now), [Request::Writing]);
    }
    machine.on_event(written(WriteResult::MapWritten(barrier_map(&[0]))), at(now));
    let (pod, uid) = (web(), "map-uid".to_owned());
    machine.on_event(Event::MapGone { pod, uid }, at(now));
    machine.on_event(written(WriteResult::MapConflict), at(now));
    assert_eq!(
        machine.requests(absent(), now),
        [Request::Writing],
        "a success resets both counts"
    );
}

#[test]
fn failed_requests_are_retried_with_growing_pauses() {
    let mut machine = listed();
    machine.on_event(seen(single()), at(0));
    let mut now = 0;
    for (result, pause) in [
        (WriteResult::Failed(None), 1_000),
        (WriteResult::PodBusy, 2_000),
        (WriteResult::Failed(Some("no".to_owned())), 4_000),
        (WriteResult::Failed(None), 8_000),
        (WriteResult::Failed(None), 16_000),
        (WriteResult::Failed(None), 30_000),
        (WriteResult::Failed(None), 30_000),
    ] {
        assert_eq!(machine.requests(written(result), now), []);
        now += pause;
        assert_eq!(machine.next_deadline(), Some(monotonic(now)));
        assert_eq!(machine.requests(Event::Tick, now), [Request::Writing]);
    }
    machine.on_event(written(WriteResult::MapConflict), at(now));
    assert_eq!(
        machine.requests(fetched(FetchResult::Failed(None)), now),
        []
    );
    assert_eq!(machine.next_deadline(), Some(monotonic(now + 30_000)));
}

#[test]
fn a_refusal_is_published_once() {
    let mut machine = listed();
    machine.on_event(seen(single()), at(0));
    let refused = || written(WriteResult::Failed(Some("quota".to_owned())));
    assert_eq!(machine.published(refused(), 0), ["launch-pod-uid-refused"]);
    machine.on_event(Event::Tick, at(1_000));
    assert_eq!(machine.published(refused(), 1_000), [] as [&str; 0]);
}

#[test]
fn a_pod_has_one_request_at_a_time() {
    let mut machine = listed();
    assert_eq!(machine.requests(seen(single()), 0), [Request::Writing]);
    assert!(machine.state(1).some_launching[0].is_writing);
    assert_eq!(machine.requests(seen(single().version("2")), 0), []);
    assert_eq!(machine.requests(Event::MapListEnded, 0), []);
    let map = WriteResult::MapWritten(barrier_map(&[0]));
    assert_eq!(machine.requests(written(map), 0), []);
    assert!(!machine.state(1).some_launching[0].is_writing);
}

#[test]
fn a_node_reports_for_containers_with_a_barrier_in_its_own_pods_only() {
    let report = |node: &str, uid: &str, container: &str| Event::Started {
        node: node.into(),
        started: Started {
            pod: web(),
            pod_uid: uid.into(),
            container: container.into(),
            container_id: "app-0".into(),
        },
    };
    let mut machine = listed();
    machine.on_event(seen(single()), at(0));
    for (node, uid, container) in [
        ("node-2", "pod-uid", "app"),
        ("", "pod-uid", "app"),
        ("node-1", "other", "app"),
        ("node-1", "pod-uid", "invented"),
    ] {
        assert_eq!(machine.on_event(report(node, uid, container), at(0)), []);
    }
    let accepted = machine.on_event(report("node-1", "pod-uid", "app"), at(0));
    assert!(
        matches!(
            accepted[..],
            [Effect {
                action: Action::StartAccepted,
                ..
            }]
        ),
        "{accepted:?}"
    );
    machine.on_event(seen(single().uid("unscheduled").on(None)), at(0));
    assert_eq!(
        machine.on_event(report("", "unscheduled", "app"), at(0)),
        []
    );
}

#[test]
fn the_time_without_a_node_is_not_a_levels_time() {
    let mut machine = listed();
    let mut events_at = |node, second: u64| {
        let pod = single().on(node).version(&second.to_string());
        machine.published(seen(pod), second * 1_000).len()
    };
    events_at(None, 0);
    machine.on_event(written(WriteResult::MapWritten(barrier_map(&[0]))), at(0));
    let mut events_at = |node, second: u64| {
        let pod = single().on(node).version(&second.to_string());
        machine.published(seen(pod), second * 1_000).len()
    };
    assert_eq!(events_at(Some("node-1"), 600), 0);
    assert_eq!(events_at(Some("node-1"), 659), 0);
    assert_eq!(events_at(Some("node-1"), 660), 1);
    assert_eq!(events_at(Some("node-1"), 661), 0, "it is published once");
}

#[test]
fn older_objects_change_nothing() {
    let mut machine = listed();
    let done = || single().up("app").completed();
    machine.on_event(seen(done().version("9")), at(0));
    let newer = BarrierMap {
        version: "10".to_owned(),
        ..barrier_map(&[0])
    };
    machine.on_event(written(WriteResult::MapWritten(newer.clone())), at(0));
    assert_eq!(machine.on_event(map_seen(barrier_map(&[])), at(0)), []);
    assert_eq!(machine.maps.view(&web()), crate::MapView::Present(&newer));
    let older = single().up("app").version("8");
    assert_eq!(machine.on_event(seen(older), at(0)), []);
    assert_eq!(machine.launches[&web()].request, Request::Idle);
    // Another pod of the name is newer, whatever its version is.
    machine.on_event(seen(single().uid("next").version("8")), at(0));
    assert_eq!(machine.launches[&web()].pod.pod.uid.as_str(), "next");
}

#[test]
fn an_answer_about_an_earlier_pod_changes_nothing_of_its_successor() {
    let mut machine = listed();
    machine.on_event(seen(single()), at(0));
    machine.on_event(seen(single().uid("next")), at(0));
    for result in [
        WriteResult::PodWritten(Box::new(single().version("7").build())),
        WriteResult::PodGone,
        WriteResult::PodBusy,
        WriteResult::MapConflict,
    ] {
        assert_eq!(machine.requests(written(result), 0), []);
        assert_eq!(machine.launches[&web()].pod.pod.uid.as_str(), "next");
        assert_eq!(machine.launches[&web()].request, Request::Writing);
    }
}

#[test]
fn an_answer_about_a_forgotten_pod_does_not_bring_it_back() {
    let mut machine = listed();
    machine.on_event(seen(single()), at(0));
    let (pod, uid) = (web(), "pod-uid".into());
    machine.on_event(Event::PodGone { pod, uid }, at(0));
    let late = WriteResult::PodWritten(Box::new(single().version("7").build()));
    machine.on_event(written(late), at(0));
    assert_eq!((machine.state(1).pods, machine.state(1).launching), (0, 0));
}

#[test]
fn a_list_forgets_what_it_does_not_show() {
    let mut machine = listed();
    machine.on_event(seen(single()), at(0));
    machine.on_event(seen(single().named("db")), at(0));
    machine.on_event(written(WriteResult::MapWritten(barrier_map(&[0]))), at(0));
    // A pod that does not decode stays as it was last read.
    let unreadable = PodKey {
        name: "db".into(),
        ..web()
    };
    machine.on_event(Event::PodListBegun, at(0));
    machine.on_event(Event::PodUnreadable(unreadable), at(0));
    let ended = machine.on_event(Event::PodListEnded, at(0));
    assert!(
        matches!(
            ended[..],
            [Effect {
                action: Action::LaunchEnded { is_launched: false },
                ..
            }]
        ),
        "{ended:?}"
    );
    assert_eq!((machine.state(9).pods, machine.state(9).launching), (1, 1));
    // A ConfigMap that cannot be read is there.
    machine.on_event(seen(single()), at(0));
    machine.on_event(Event::MapListBegun, at(0));
    machine.on_event(Event::MapUnreadable(web()), at(0));
    assert_eq!(machine.writes(Event::MapListEnded, 0), []);
    machine.on_event(Event::MapListBegun, at(0));
    assert_eq!(machine.writes(Event::MapListEnded, 0).len(), 1);
}

#[test]
fn a_launch_is_reported_level_by_level() {
    let pod = || {
        launch_pod(&[("proxy", 1), ("app", 0)]).with(|pod| pod.trace_parent = Some("00".to_owned()))
    };
    let mut machine = listed();
    let name = |effect: &Effect| match &effect.action {
        Action::Write(_) => "write".to_owned(),
        Action::FetchMap => "fetch".to_owned(),
        Action::PublishEvent(event) => event.name.clone(),
        Action::StartAccepted => "start".to_owned(),
        Action::LaunchBegun { traceparent } => format!("begun {traceparent:?}"),
        Action::LevelBegun { level, containers } => format!("{level} begun: {}", containers[0]),
        Action::LevelEnded { level, took } => format!("{level} ended: {took:?}"),
        Action::LaunchEnded { is_launched } => format!("ended: {is_launched}"),
    };
    let mut names =
        |event, now| -> Vec<_> { machine.on_event(event, at(now)).iter().map(name).collect() };
    assert_eq!(
        names(seen(pod()), 0),
        ["begun Some(\"00\")", "p_1 begun: proxy", "write"]
    );
    assert_eq!(
        names(written(WriteResult::MapWritten(barrier_map(&[1]))), 0),
        [] as [&str; 0]
    );
    let next = pod().up("proxy").version("2");
    assert_eq!(
        names(seen(next), 2_000),
        ["p_1 ended: 2s", "p_0 begun: app", "write"]
    );
    let map = WriteResult::MapWritten(barrier_map(&[1, 0]));
    assert_eq!(names(written(map), 2_000), ["write"], "a nudge");
    let nudged = pod().up("proxy").nudged(0).version("3").build();
    let nudged = WriteResult::PodWritten(Box::new(nudged));
    assert_eq!(names(written(nudged), 2_000), [] as [&str; 0]);
    let done = pod().up("proxy").up("app").nudged(0).version("4");
    assert_eq!(
        names(seen(done), 5_000),
        ["p_0 ended: 3s", "ended: true", "write"]
    );
    // A container that goes down later belongs to no launch.
    let exited = ContainerState::Terminated {
        exit_code: 1,
        reason: None,
    };
    let down = pod().up("proxy").shows("app", exited, false).version("5");
    assert_eq!(names(seen(down), 6_000), [] as [&str; 0]);
}

#[test]
fn a_pod_that_an_earlier_leader_launched_is_not_reported() {
    let mut machine = listed();
    let effects = machine.on_event(seen(single().completed()), at(0));
    assert!(
        matches!(
            effects[..],
            [Effect {
                action: Action::Write(_),
                ..
            }]
        ),
        "{effects:?}"
    );
    assert_eq!(machine.state(1).launching, 1);
}

#[test]
fn the_state_shows_some_of_the_launching_pods() {
    let mut machine = listed();
    for name in ["a", "b", "c"] {
        machine.on_event(seen(single().named(name)), at(0));
    }
    machine.on_event(seen(single().named("d").up("app")), at(0));
    let state = machine.state(2);
    assert_eq!(
        (state.pods, state.launching, state.some_launching.len()),
        (4, 3, 2)
    );
    let first = &state.some_launching[0];
    assert_eq!(first.level, Some(Priority::new(0)));
    assert_eq!(first.waiting_for[0].container.as_str(), "app");
}

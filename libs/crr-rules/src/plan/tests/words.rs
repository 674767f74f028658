//! What a CRR says of itself: conditions and events.

use super::*;

/// `Type=State Reason: message` of each condition that a plan would write.
fn conditions(snapshot: &Snapshot, seconds: u64) -> Vec<String> {
    let plan = plan(snapshot, at(seconds));
    let status = plan.status().expect("a status is due");
    let lines = status.conditions.iter().map(|condition| {
        let (kind, state) = (condition.kind.as_str(), condition.state.as_str());
        format!("{kind}={state} {}: {}", condition.reason, condition.message)
    });
    lines.collect()
}

fn check_conditions(snapshot: &Snapshot, seconds: u64, dispatched: &str, succeeded: &str) {
    let accepted = "Accepted=True Admitted: for pod web (pod-uid) on node node-1";
    let expected = [
        accepted.to_owned(),
        format!("Dispatched={dispatched}"),
        format!("Succeeded={succeeded}"),
    ];
    assert_eq!(conditions(snapshot, seconds), expected);
}

#[test]
fn a_request_explains_itself_from_start_to_end() {
    let fresh = names(&["app"]);
    check_conditions(
        &fresh,
        0,
        "False Sending: the order is on its way to node node-1",
        "Unknown Stopping: container app: it is not stopped yet",
    );
    let killed = fresh.recreating().killed("app");
    check_conditions(
        &killed,
        3,
        "True NodeAnswered: node node-1 has the order",
        "Unknown WaitingForContainer: container app: its successor is not up yet",
    );
    check_conditions(
        &killed.back("app"),
        3,
        "True NodeAnswered: node node-1 has the order",
        "True AllRecreated: recreated app",
    );
}

#[test]
fn an_end_without_success_says_why() {
    let two = names(&["a", "b"])
        .with(|snapshot| snapshot.crr.active_deadline = Some(Duration::from_secs(9)))
        .recreating();
    let stuck = two.clone().killed("a").back("a").container("a", |status| {
        status.is_ready = false;
        status.state = ContainerState::Waiting {
            reason: Some("CrashLoopBackOff".to_owned()),
            message: Some("back-off 10s".to_owned()),
        };
    });
    check_conditions(
        &stuck,
        9,
        "True NodeAnswered: node node-1 has the order",
        "False DeadlineExceeded: activeDeadlineSeconds (9) passed before the end: \
         container a: CrashLoopBackOff: back-off 10s; container b: it is not stopped yet",
    );
    let gone = two.with(|snapshot| snapshot.pod = PodView::Gone);
    check_conditions(
        &gone,
        1,
        "False Sending: the order is on its way to node node-1",
        "False PodGone: pod web was deleted or replaced before the end: \
         container a: it is not stopped yet; container b: it is not stopped yet",
    );
}

#[test]
fn a_waiting_request_and_a_silent_node_are_named() {
    let second = names(&["app"]).with(|snapshot| snapshot.turn = Turn::Behind("first".into()));
    let waiting = "waiting for ContainerRecreateRequest first of the same pod";
    check_conditions(
        &second,
        0,
        &format!("False WaitingForTurn: {waiting}"),
        &format!("Unknown WaitingForTurn: {waiting}"),
    );
    let silent = Progress::Unanswered {
        since: at(1),
        silence: Silence::Node,
    };
    let silence = "node node-1 has not answered since 1970-01-12T13:46:41Z";
    check_conditions(
        &names(&["app"]).recreating().ordered("app", silent),
        6,
        &format!("False NodeSilent: {silence}"),
        &format!("Unknown Stopping: container app: {silence}"),
    );
}

#[test]
fn a_condition_keeps_its_time_for_as_long_as_it_holds() {
    let one = names(&["app"]).recreating().killed("app");
    let status = plan(&one, at(5)).status().unwrap().clone();
    let since = |kind| status.condition(kind).unwrap().since;
    assert_eq!(since(ConditionType::Accepted), at(0).wall);
    assert_eq!(since(ConditionType::Dispatched), at(5).wall);
    assert_eq!(since(ConditionType::Succeeded), at(0).wall);
}

/// `about reason: message` of each event.
fn check_events(snapshot: &Snapshot, expected: &[&str]) {
    let events = plan(snapshot, at(1)).events;
    let told = events.iter().map(|event| {
        let about = match &event.about {
            crate::About::Crr => "crr",
            crate::About::Container(name) | crate::About::Sidecar(name) => name.as_str(),
        };
        let kind = if event.is_warning { "!" } else { "" };
        format!("{about} {kind}{}: {}", event.reason, event.message)
    });
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn a_simple_request_has_two_events() {
    let one = names(&["app"]).recreating();
    check_events(&one, &[]);
    let killing = "app Killing: Stopping container app by ContainerRecreateRequest restart, requested by alice";
    let killed = one.killed("app");
    check_events(&killed, &[killing]);
    let ended = killed.back("app").with(|snapshot| {
        snapshot.crr.status = plan(snapshot, at(1)).status().unwrap().clone();
    });
    check_events(&ended, &[killing, "crr Recreated: recreated app"]);
    let closed = ended.with(|snapshot| snapshot.crr.is_labelled_active = false);
    check_events(&closed, &[killing]);
}

#[test]
fn a_native_sidecar_is_told_as_one_and_only_once_the_pod_was_seen() {
    let about = |snapshot: &Snapshot| {
        let events = plan(snapshot, at(1)).events;
        events.into_iter().next().map(|event| event.about)
    };
    let killed = names(&["app"]).recreating().killed("app");
    let app = crate::About::Container("app".into());
    assert_eq!(about(&killed), Some(app.clone()));
    let sidecar = killed.clone().with(|snapshot| {
        if let PodView::Present(pod) = &mut snapshot.pod {
            pod.containers[0].is_sidecar = true;
        }
    });
    assert_eq!(about(&sidecar), Some(crate::About::Sidecar("app".into())));
    let unseen = killed
        .clone()
        .with(|snapshot| snapshot.pod = PodView::Unknown);
    assert_eq!(about(&unseen), None);
    let gone = killed.with(|snapshot| snapshot.pod = PodView::Gone);
    assert_eq!(about(&gone), Some(app));
}

#[test]
fn a_failed_hook_and_a_failed_stop_are_warnings() {
    let hook = Progress::Done(Outcome::Stopped {
        hook_error: Some("exit code 1".to_owned()),
    });
    let one = names(&["app"])
        .with(|snapshot| snapshot.crr.requested_by = None)
        .recreating();
    check_events(
        &one.clone().ordered("app", hook),
        &[
            "app Killing: Stopping container app by ContainerRecreateRequest restart",
            "app !FailedPreStopHook: preStop hook of container app failed: exit code 1",
        ],
    );
    let unusable = one.clone().killed("app").with(|snapshot| {
        snapshot.crr.containers[0].hook_fault = Some("no such port".to_owned());
    });
    check_events(
        &unusable,
        &[
            "app Killing: Stopping container app by ContainerRecreateRequest restart",
            "app !FailedPreStopHook: preStop hook of container app failed: no such port",
        ],
    );
    let error = Progress::Done(Outcome::Failed {
        message: "no".to_owned(),
    });
    let failed = one.ordered("app", error).with(|snapshot| {
        snapshot.crr.status = plan(snapshot, at(1)).status().unwrap().clone();
    });
    check_events(
        &failed,
        &["crr !RecreateFailed: container app: kill container error: no"],
    );
}

#[test]
fn work_that_takes_long_is_told_when_it_is_written() {
    let slow = names(&["app"]).recreating().killed("app");
    let written = slow.with(|snapshot| {
        snapshot.crr.status = plan(snapshot, at(3)).status().unwrap().clone();
    });
    let events = plan(&written, at(4)).events;
    assert_eq!(events.len(), 2);
    assert_eq!(
        events[1].message,
        "Recreating app of pod web, requested by alice"
    );
    let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["crr-1-killing-0", "crr-1-start"]);
}

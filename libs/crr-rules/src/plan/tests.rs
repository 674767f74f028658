//! Plans, case by case: one builder, one-word differences.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use model::{
    condition::{Condition, ConditionState},
    crr::FailurePolicy,
    ids::ContainerName,
    order::{HttpScheme, Outcome},
    pod::{ContainerStatus, Pod, RestartPolicy},
};
use order_rules::{KnownOrder, Silence};
use proptest::prelude::*;

use super::*;
use crate::snapshot::{PodView, Seen};

mod steps;
mod words;

fn at(seconds: u64) -> Now {
    testkit::at(seconds * 1000)
}

/// `at`, on the clock that wake-up times are on.
fn moment(seconds: u64) -> Monotonic {
    at(seconds).monotonic
}

fn names(names: &[&str]) -> Snapshot {
    let requested_by = Some("alice".to_owned());
    Snapshot {
        crr: testkit::crr(names)
            .with(|crr| crr.requested_by = requested_by)
            .build(),
        pod: PodView::Present(Box::new(testkit::pod(names).build())),
        orders: BTreeMap::new(),
        seen_running: BTreeMap::new(),
        seen_down: BTreeMap::new(),
        removed_at: BTreeMap::new(),
        nudged_at: None,
        turn: Turn::Mine,
        status_written_at: None,
        progress_every: crate::limits::progress_interval(1),
    }
}

impl Plan {
    /// The stop that is ordered, with its instance's id.
    fn stop(&self) -> Option<(&Order, &Stop)> {
        let mut stops = self.orders.iter().filter_map(|order| match &order.verb {
            Verb::Stop(stop) => Some((order, stop)),
            Verb::RemoveDeadInstances => None,
        });
        stops.next()
    }

    /// The containers whose dead instances are to be removed.
    fn removals(&self) -> Vec<&str> {
        let removals = self
            .orders
            .iter()
            .filter(|order| order.verb == Verb::RemoveDeadInstances);
        removals
            .map(|order| order.instance.container_id.as_str())
            .collect()
    }

    fn status(&self) -> Option<&CrrStatus> {
        match &self.write {
            Some(Write::Status(status)) => Some(status),
            Some(Write::AddFinalizer | Write::Gate(_) | Write::Close | Write::Delete) | None => {
                None
            }
        }
    }
}

impl Snapshot {
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// As it is once the first status was written.
    fn recreating(self) -> Self {
        let status = plan(&self, at(0)).status().unwrap().clone();
        self.with(|snapshot| {
            snapshot.crr.status = status;
            snapshot.status_written_at = Some(moment(0));
        })
    }

    fn ordered(self, name: &str, progress: Progress) -> Self {
        let order = KnownOrder {
            target: ContainerId::new(format!("{name}-0")),
            progress,
        };
        self.with(|snapshot| {
            snapshot.orders.insert(name.into(), order);
        })
    }

    fn killed(self, name: &str) -> Self {
        self.ordered(name, Progress::Done(Outcome::Stopped { hook_error: None }))
    }

    fn container(self, name: &str, change: impl FnOnce(&mut ContainerStatus)) -> Self {
        self.with(|snapshot| {
            let PodView::Present(pod) = &mut snapshot.pod else {
                panic!("pod is there")
            };
            let name = ContainerName::new(name);
            change(
                pod.containers
                    .iter_mut()
                    .find(|status| status.name == name)
                    .unwrap(),
            );
        })
    }

    /// Pod status shows the successor.
    fn back(self, name: &str) -> Self {
        let id = format!("containerd://{name}-new");
        self.container(name, |status| {
            status.container_id = Some(id.parse().unwrap());
            status.restart_count = 1;
        })
    }

    fn exited(self, name: &str, exit_code: i32, restart_policy: RestartPolicy) -> Self {
        self.container(name, |status| {
            status.state = ContainerState::Terminated {
                exit_code,
                reason: None,
            };
            status.restart_policy = restart_policy;
        })
    }
}

/// `phase message | name:phase:killed …` of the plan's status, `-` for none; then the ordered container.
fn check(snapshot: &Snapshot, seconds: u64, expected: &str) {
    let plan = plan(snapshot, at(seconds));
    let status = plan.status().map_or("-".to_owned(), |status| {
        let states = status.containers.iter().map(|state| {
            let killed = if state.is_killed { ":killed" } else { "" };
            let message = if state.message.is_empty() {
                ""
            } else {
                &format!("({})", state.message)
            };
            format!(" {}:{:?}{killed}{message}", state.name, state.phase)
        });
        let message = &status.message;
        format!(
            "{:?} {message:?}{}",
            status.phase.unwrap(),
            states.collect::<String>()
        )
    });
    let order = plan.stop().map_or(String::new(), |(order, _)| {
        format!(" stop {}", order.instance.container_id)
    });
    assert_eq!(format!("{status}{order}"), expected);
}

#[test]
fn writes_recreating_before_it_orders_anything() {
    check(&names(&["app"]), 0, r#"Recreating "" app:Pending"#);
    check(&names(&["app"]).recreating(), 0, "- stop app-0");
}

#[test]
fn orders_even_before_the_pod_was_seen() {
    let unseen = names(&["app"])
        .recreating()
        .with(|snapshot| snapshot.pod = PodView::Unknown);
    check(&unseen, 0, "- stop app-0");
}

#[test]
fn completes_with_one_write_when_the_new_instance_is_ready() {
    let one = names(&["app"]).recreating().killed("app");
    check(&one, 1, "-");
    check(&one.back("app"), 1, r#"Completed "" app:Succeeded:killed"#);
}

#[test]
fn tells_progress_only_when_it_takes_long() {
    let one = names(&["app"]).recreating().killed("app");
    assert_eq!(plan(&one, at(1)).wake_at, Some(moment(3)));
    check(&one, 3, r#"Recreating "" app:Recreating:killed"#);
}

#[test]
fn stops_in_list_order_one_after_the_other() {
    let two = names(&["b", "a"]).recreating();
    check(&two, 0, "- stop b-0");
    let accepted = two.clone().ordered("b", Progress::Accepted);
    check(&accepted, 1, "- stop b-0");
    check(&two.clone().killed("b"), 1, "- stop a-0");
    let ordered = two
        .killed("b")
        .with(|snapshot| snapshot.crr.strategy.is_ordered = true);
    check(&ordered, 1, "-");
    check(&ordered.back("b"), 1, "- stop a-0");
}

#[test]
fn waits_until_the_instance_was_up_long_enough_by_our_own_clock() {
    let young = names(&["app"])
        .with(|snapshot| snapshot.crr.strategy.min_started = Duration::from_secs(2))
        .recreating()
        .killed("app")
        .back("app")
        .with(|snapshot| {
            let container_id = "containerd://app-new".parse().unwrap();
            let seen = Seen {
                container_id,
                since: moment(1),
            };
            snapshot.seen_running.insert("app".into(), seen);
        });
    check(&young, 2, "-");
    assert_eq!(plan(&young, at(2)).wake_at, Some(moment(3)));
    check(&young, 3, r#"Completed "" app:Succeeded:killed"#);
}

#[test]
fn a_crashed_instance_counts_as_restarted_and_not_as_killed() {
    let newest = ContainerId::new("app-new");
    let refused = names(&["app"]).recreating().ordered(
        "app",
        Progress::Refused(Refusal::OtherInstance {
            container_id: newest,
            restart_count: 1,
        }),
    );
    check(
        &refused.clone().back("app"),
        1,
        r#"Completed "" app:Succeeded"#,
    );
    let forced = refused.with(|snapshot| snapshot.crr.strategy.is_forced = true);
    check(&forced, 1, "- stop app-new");
}

#[test]
fn a_new_leader_asks_the_node_before_it_says_who_stopped_the_instance() {
    check(&names(&["app"]).recreating().back("app"), 1, "- stop app-0");
    let silent = Progress::Unanswered {
        since: at(1),
        silence: Silence::Node,
    };
    let asked = names(&["app"])
        .recreating()
        .back("app")
        .ordered("app", silent);
    check(&asked, 2, "- stop app-0");
    check(&asked, 11, r#"Completed "" app:Succeeded"#);
}

#[test]
fn failures_end_the_request_or_are_passed_over() {
    let error = Progress::Done(Outcome::Failed {
        message: "no".to_owned(),
    });
    let two = names(&["a", "b"]).recreating().ordered("a", error);
    check(
        &two,
        1,
        r#"Completed "" a:Failed(kill container error: no) b:Pending"#,
    );
    let ignoring =
        two.with(|snapshot| snapshot.crr.strategy.failure_policy = FailurePolicy::Ignore);
    check(&ignoring, 1, "- stop b-0");
}

#[test]
fn a_container_that_will_not_come_back_is_failed() {
    let one = names(&["app"]).recreating().killed("app");
    check(
        &one.clone().exited("app", 143, RestartPolicy::Never),
        1,
        r#"Completed "" app:Failed:killed(the container exited with code 143 and restartPolicy is Never)"#,
    );
    check(
        &one.clone().exited("app", 143, RestartPolicy::OnFailure),
        1,
        "-",
    );
    check(&one.exited("app", 0, RestartPolicy::Always), 1, "-");
}

#[test]
fn ends_when_the_pod_is_gone_or_another_one() {
    let one = names(&["app"]).recreating();
    let ended = r#"Completed "pod has gone" app:Pending"#;
    check(
        &one.clone().with(|snapshot| snapshot.pod = PodView::Gone),
        1,
        ended,
    );
    let other = one.with(|snapshot| snapshot.crr.pod_uid = Some("other".into()));
    check(&other, 1, ended);
}

#[test]
fn a_container_of_another_pod_of_that_name_is_no_successor() {
    let other = names(&["app"])
        .recreating()
        .killed("app")
        .back("app")
        .with(|snapshot| {
            snapshot.crr.pod_uid = Some("other".into());
        });
    check(
        &other,
        1,
        r#"Completed "pod has gone" app:Recreating:killed"#,
    );
}

/// A forced stop of a newer instance than the fence, and a node that is silent afterwards.
#[test]
fn the_instance_that_is_to_be_stopped_is_not_its_own_successor() {
    let silent = Progress::Unanswered {
        since: at(1),
        silence: Silence::Node,
    };
    let forced = names(&["app"]).recreating().back("app").with(|snapshot| {
        snapshot.crr.strategy.is_forced = true;
        let order = KnownOrder {
            target: ContainerId::new("app-new"),
            progress: silent,
        };
        snapshot.orders.insert("app".into(), order);
    });
    let plan = plan(&forced, at(12));
    assert!(plan.stop().is_some(), "it is ordered again");
}

#[test]
fn a_request_that_admission_did_not_complete_ends_at_once() {
    let message = r#"Completed "the request lacks the labels that admission writes: is the webhook installed?" app:Pending"#;
    let node = names(&["app"]).with(|snapshot| snapshot.crr.node = None);
    check(&node, 0, message);
    let pod = names(&["app"]).with(|snapshot| snapshot.crr.pod_uid = None);
    check(&pod, 0, message);
}

#[test]
fn ends_at_the_deadline_with_the_states_as_they_are() {
    let one = names(&["app"])
        .with(|snapshot| snapshot.crr.active_deadline = Some(Duration::from_secs(10)))
        .recreating();
    assert_eq!(plan(&one, at(1)).wake_at, Some(moment(10)));
    check(
        &one,
        10,
        r#"Completed "recreating has exceeded the activeDeadlineSeconds" app:Pending"#,
    );
}

#[test]
fn a_stop_that_ends_after_the_deadline_is_still_told() {
    let one = names(&["app"])
        .with(|snapshot| snapshot.crr.active_deadline = Some(Duration::from_secs(10)))
        .recreating();
    let ended = plan(&one, at(10)).status().unwrap().clone();
    let late = one
        .killed("app")
        .with(|snapshot| snapshot.crr.status = ended);
    check(
        &late,
        12,
        r#"Completed "recreating has exceeded the activeDeadlineSeconds" app:Recreating:killed"#,
    );
}

#[test]
fn names_a_silent_node_and_gives_up_after_a_minute() {
    let silent = Progress::Unanswered {
        since: at(1),
        silence: Silence::Node,
    };
    let one = names(&["app"]).recreating().ordered("app", silent);
    assert_eq!(plan(&one, at(1)).wake_at, Some(moment(6)));
    check(
        &one,
        6,
        r#"Recreating "" app:Pending(node node-1 has not answered since 1970-01-12T13:46:41Z) stop app-0"#,
    );
    check(
        &one,
        61,
        r#"Completed "daemon has not responded for a long time" app:Pending(node node-1 has not answered since 1970-01-12T13:46:41Z)"#,
    );
}

/// Its executor was away while `a` crashed and came back slowly; it answers now, and is at work on `b`.
#[test]
fn a_node_that_was_silent_about_a_container_that_is_back_is_not_silent() {
    let silent = Progress::Unanswered {
        since: at(1),
        silence: Silence::Node,
    };
    let two = names(&["a", "b"])
        .recreating()
        .back("a")
        .container("a", |status| status.is_ready = false)
        .ordered("a", silent)
        .ordered("b", Progress::Accepted);
    assert!(
        plan(&two, at(62))
            .status()
            .is_none_or(|status| status.phase == Some(CrrPhase::Recreating))
    );
}

#[test]
fn a_grace_of_centuries_is_ordered_as_the_longest_that_a_node_takes() {
    let one = names(&["app"]).recreating().with(|snapshot| {
        snapshot.crr.strategy.termination_grace = Some(Duration::MAX);
    });
    assert_eq!(plan(&one, at(0)).stop().unwrap().1.grace, MAX_GRACE);
}

#[test]
fn nothing_is_to_be_begun_after_the_deadline() {
    let one = names(&["app"]).recreating();
    assert_eq!(plan(&one, at(3)).stop().unwrap().1.begin_within, None);
    let limited = one.with(|snapshot| {
        snapshot.crr.active_deadline = Some(Duration::from_secs(10));
    });
    let plan = plan(&limited, at(3));
    let limit = plan.stop().unwrap().1.begin_within;
    assert_eq!(limit, Some(Duration::from_secs(7)));
}

#[test]
fn a_bus_that_is_away_is_waited_for() {
    let away = Progress::Unanswered {
        since: at(1),
        silence: Silence::Bus,
    };
    let one = names(&["app"]).recreating().ordered("app", away);
    check(
        &one,
        300,
        r#"Recreating "" app:Pending(the message bus has been away since 1970-01-12T13:46:41Z) stop app-0"#,
    );
}

#[test]
fn waits_its_turn_and_says_for_whom() {
    let second = names(&["app"]).with(|snapshot| snapshot.turn = Turn::Behind("first".into()));
    check(
        &second,
        0,
        r#"Pending "waiting for ContainerRecreateRequest first of the same pod" app:Pending"#,
    );
}

#[test]
fn after_the_end_the_label_goes_and_later_the_request() {
    let ended = names(&["app"])
        .recreating()
        .killed("app")
        .back("app")
        .with(|snapshot| {
            snapshot.crr.status = plan(snapshot, at(1)).status().unwrap().clone();
            snapshot.crr.ttl_after_finished = Some(Duration::from_secs(5));
        });
    assert_eq!(plan(&ended, at(1)).write, Some(Write::Close));
    let unlabelled = ended.with(|snapshot| snapshot.crr.is_labelled_active = false);
    let waiting = plan(&unlabelled, at(2));
    assert_eq!((waiting.write, waiting.wake_at), (None, Some(moment(6))));
    assert_eq!(plan(&unlabelled, at(6)).write, Some(Write::Delete));
}

#[test]
fn carries_hook_and_grace_into_the_order() {
    let hook = PreStop::HttpGet {
        scheme: HttpScheme::Http,
        host: None,
        port: 80,
        path: "/".to_owned(),
        headers: vec![],
    };
    let one = names(&["app"]).recreating().with(|snapshot| {
        snapshot.crr.containers[0].pre_stop = Some(hook.clone());
        snapshot.crr.strategy.termination_grace = Some(Duration::from_secs(7));
    });
    let planned = plan(&one, at(0));
    let (order, stop) = planned.stop().unwrap();
    assert_eq!(
        (&stop.pre_stop, stop.grace),
        (&Some(hook), Duration::from_secs(7))
    );
    assert_eq!(order.id.to_string(), "stop/1/app");
    let unseen = one.clone().with(|snapshot| snapshot.pod = PodView::Unknown);
    let unseen = plan(&unseen, at(0));
    assert_eq!((unseen.stop(), unseen.needs_pod), (None, true));
    let in_nodes_network = one.with(|snapshot| {
        if let PodView::Present(pod) = &mut snapshot.pod {
            pod.host_address = Some("10.0.0.7".to_owned());
        }
    });
    let planned = plan(&in_nodes_network, at(0));
    let (_, stop) = planned.stop().unwrap();
    let Some(PreStop::HttpGet { host, .. }) = &stop.pre_stop else {
        panic!("{:?}", stop.pre_stop);
    };
    assert_eq!(host.as_deref(), Some("10.0.0.7"));
}

fn any_progress() -> impl Strategies<Progress> {
    prop_oneof![
        Just(Progress::Sent),
        Just(Progress::Accepted),
        Just(Progress::Refused(Refusal::NoSuchPod)),
        Just(Progress::Refused(Refusal::AlreadyExited)),
        Just(Progress::Unanswered {
            since: at(1),
            silence: Silence::Node
        }),
        Just(Progress::Done(Outcome::Stopped { hook_error: None })),
        Just(Progress::Done(Outcome::Gone)),
        Just(Progress::Done(Outcome::Failed {
            message: "no".to_owned()
        })),
    ]
}

/// proptest's; the bare word `Strategy` is the CRR's here.
trait Strategies<T>: Strategy<Value = T> {}
impl<T, S: Strategy<Value = T>> Strategies<T> for S {}

/// Seconds as anybody may write them.
fn any_seconds() -> impl Strategies<Duration> {
    prop_oneof![Just(0), Just(u64::MAX), Just(i64::MAX as u64), 0..u64::MAX]
        .prop_map(Duration::from_secs)
}

fn any_moment() -> impl Strategies<Timestamp> {
    prop_oneof![
        Just(Timestamp::MIN),
        Just(Timestamp::MAX),
        Just(at(0).wall),
        Just(at(100).wall)
    ]
}

proptest! {
    /// Admission lets any number through, and a status may be anybody's.
    #[test]
    fn no_number_and_no_moment_is_too_large(
        [deadline, ttl, grace, unready, started] in [any_seconds(), any_seconds(), any_seconds(), any_seconds(), any_seconds()],
        [created, written, seen, silent, now] in [any_moment(), any_moment(), any_moment(), any_moment(), any_moment()],
        ended in any::<bool>(), is_draining in any::<bool>(),
    ) {
        let silence = Silence::Node;
        let latest = Monotonic::new(Duration::MAX);
        let [silent, now] = [silent, now].map(|wall| Now { wall, monotonic: latest });
        let mut snapshot = names(&["a", "b"]).recreating().back("a").killed("a")
            .ordered("b", Progress::Unanswered { since: silent, silence });
        let crr = &mut snapshot.crr;
        crr.created_at = created;
        crr.active_deadline = Some(deadline);
        crr.ttl_after_finished = Some(ttl);
        crr.strategy.termination_grace = Some(grace);
        crr.strategy.unready_grace = is_draining.then_some(unready);
        crr.strategy.min_started = started;
        crr.status.conditions.push(Condition {
            kind: ConditionType::PreRecreateGrace, state: ConditionState::True, reason: "X".to_owned(), message: String::new(), since: seen,
        });
        if ended {
            crr.status.phase = Some(CrrPhase::Completed);
            crr.status.completed_at = Some(written);
        }
        snapshot.status_written_at = Some(latest);
        let instance = Seen { container_id: "containerd://a-new".parse().unwrap(), since: latest };
        snapshot.seen_running.insert("a".into(), instance.clone());
        snapshot.seen_down.insert("b".into(), instance);
        plan(&snapshot, now);
    }

    /// Whatever is observed: nothing is ordered beside an unwritten start or end, a final state is kept,
    /// and a plan that asks for nothing names what it waits for.
    #[test]
    fn any_plan_keeps_the_order_of_things(
        progress in any_progress(), second in any_progress(), is_back in any::<bool>(),
        is_ordered in any::<bool>(), is_forced in any::<bool>(), seconds in 0..200_u64,
    ) {
        let mut snapshot = names(&["a", "b"]).recreating().ordered("a", progress).ordered("b", second);
        snapshot.crr.strategy.is_ordered = is_ordered;
        snapshot.crr.strategy.is_forced = is_forced;
        if is_back {
            snapshot = snapshot.back("a");
        }
        let now = at(seconds);
        let first = plan(&snapshot, now);
        let is_over = first.status().is_some_and(|status| status.phase == Some(CrrPhase::Completed));
        prop_assert!(!is_over || first.orders.is_empty());
        if let Some(status) = first.status().cloned() {
            snapshot.crr.status = status;
            snapshot.status_written_at = Some(now.monotonic);
            let again = plan(&snapshot, now);
            prop_assert!(again.status().is_none() || is_over, "a written status is not written again");
        }
    }
}

//! Steps around the stops: the drain before them, the back-off after them.

use model::pod::Gate;

use super::*;

impl Snapshot {
    fn pod(self, change: impl FnOnce(&mut Pod)) -> Self {
        self.with(|snapshot| {
            let PodView::Present(pod) = &mut snapshot.pod else {
                panic!("pod is there")
            };
            change(pod);
        })
    }

    fn gated(self) -> Self {
        let gate = Gate {
            is_open: Some(true),
            message: "[]".to_owned(),
        };
        self.pod(|pod| pod.gate = Some(gate))
    }

    /// As it is once the plan's write is stored.
    fn stored(self, seconds: u64) -> Self {
        let write = plan(&self, at(seconds)).write.expect("a write is due");
        self.with(|snapshot| match write {
            Write::Status(status) => {
                snapshot.crr.status = status;
                snapshot.status_written_at = Some(moment(seconds));
            }
            Write::AddFinalizer => {
                snapshot.crr.finalizers = vec![model::labels::UNREADY_ACQUIRED.to_owned()];
            }
            Write::Gate(write) => {
                let PodView::Present(pod) = &mut snapshot.pod else {
                    panic!("a gate is of a pod")
                };
                pod.gate = Some(Gate {
                    is_open: Some(write.is_open),
                    message: write.message,
                });
            }
            Write::Close => {
                snapshot.crr.finalizers.clear();
                snapshot.crr.is_labelled_active = false;
            }
            Write::Delete => panic!("nobody asked for that"),
        })
    }

    /// Pod status shows the old instance of a second restart down.
    fn down(self, name: &str, seconds: u64) -> Self {
        let seen = Seen {
            container_id: format!("containerd://{name}-0").parse().unwrap(),
            since: moment(seconds),
        };
        self.exited(name, 143, RestartPolicy::Always)
            .container(name, |status| status.restart_count = 1)
            .with(|snapshot| {
                snapshot.seen_down.insert(name.into(), seen);
            })
    }
}

/// The kind of the write that is due.
fn due(snapshot: &Snapshot, seconds: u64) -> &'static str {
    match plan(snapshot, at(seconds)).write {
        None => "-",
        Some(Write::Status(_)) => "status",
        Some(Write::AddFinalizer) => "finalizer",
        Some(Write::Gate(write)) if write.is_open => "open",
        Some(Write::Gate(_)) => "shut",
        Some(Write::Close) => "close",
        Some(Write::Delete) => "delete",
    }
}

fn draining() -> Snapshot {
    names(&["app"])
        .gated()
        .with(|snapshot| snapshot.crr.strategy.unready_grace = Some(Duration::from_secs(3)))
}

#[test]
fn a_drain_is_finalizer_then_gate_then_status_then_time_then_the_stop() {
    let fresh = draining();
    assert_eq!(due(&fresh, 0), "finalizer");
    let marked = fresh.stored(0);
    assert_eq!(due(&marked, 0), "shut");
    let shut = marked.stored(0);
    check(&shut, 0, r#"Recreating "" app:Pending"#);
    let begun = shut.stored(0);
    assert_eq!(due(&begun, 0), "-");
    assert_eq!(plan(&begun, at(2)).wake_at, Some(moment(4)));
    // Counted from the end of the second in which it began: never shorter than was asked for.
    assert!(plan(&begun, at(3)).stop().is_none());
    assert!(plan(&begun, at(4)).stop().is_some());
}

#[test]
fn a_drained_pod_is_ready_again_before_the_finalizer_goes() {
    let begun = draining().stored(0).stored(0).stored(0);
    let ended = begun.killed("app").back("app").stored(5);
    assert_eq!(due(&ended, 5), "open");
    let opened = ended.stored(5);
    assert_eq!(due(&opened, 5), "close");
    assert_eq!(due(&opened.stored(5), 5), "-");
}

#[test]
fn a_request_that_is_deleted_lets_its_pod_go() {
    let begun = draining().stored(0).stored(0).stored(0);
    let deleted = begun.with(|snapshot| snapshot.crr.is_being_deleted = true);
    assert_eq!(due(&deleted, 1), "open");
    let gone = deleted
        .clone()
        .with(|snapshot| snapshot.pod = PodView::Gone);
    assert_eq!(due(&gone, 1), "close");
    let unseen = deleted.with(|snapshot| snapshot.pod = PodView::Unknown);
    let waiting = plan(&unseen, at(1));
    assert!(waiting.write.is_none() && waiting.needs_pod);
}

#[test]
fn without_a_gate_only_the_time_is_waited_for() {
    let ungated = draining().pod(|pod| pod.gate = None).stored(0);
    check(&ungated, 0, r#"Recreating "" app:Pending"#);
    let begun = ungated.stored(0);
    assert!(plan(&begun, at(1)).stop().is_none());
}

#[test]
fn a_back_off_is_concluded_from_300_ms_without_a_successor() {
    let down = names(&["app"]).recreating().killed("app").down("app", 1);
    let early = plan(&down, at(1));
    assert!(early.removals().is_empty());
    assert_eq!(early.wake_at, Some(moment(1) + Duration::from_millis(300)));
    let late = plan(&down, at(2));
    assert_eq!(late.removals(), ["app-0"]);
    assert!(!late.nudge);
}

#[test]
fn each_drop_is_followed_by_one_nudge() {
    let dropped = names(&["app"])
        .recreating()
        .killed("app")
        .down("app", 1)
        .with(|snapshot| {
            snapshot.removed_at.insert("app".into(), moment(2));
        });
    assert!(plan(&dropped, at(2)).nudge);
    let nudged = dropped
        .clone()
        .with(|snapshot| snapshot.nudged_at = Some(moment(2)));
    assert!(!plan(&nudged, at(2)).nudge);
    let mirror = dropped.pod(|pod| pod.static_uid = Some("hash".into()));
    assert!(!plan(&mirror, at(2)).nudge);
}

#[test]
fn only_a_back_off_that_can_bite_is_skipped() {
    let down = names(&["app"]).recreating().killed("app").down("app", 1);
    let is_dropped = |snapshot: &Snapshot| !plan(snapshot, at(2)).removals().is_empty();
    assert!(is_dropped(&down));
    let first = down
        .clone()
        .container("app", |status| status.restart_count = 0);
    assert!(
        !is_dropped(&first),
        "the kubelet lets nobody wait for a first restart"
    );
    let respected = down
        .clone()
        .with(|snapshot| snapshot.crr.respects_back_off = true);
    assert!(!is_dropped(&respected));
    assert!(!is_dropped(&down.clone().back("app")));
    let waiting = |reason: &str| {
        let state = ContainerState::Waiting {
            reason: Some(reason.to_owned()),
            message: None,
        };
        down.clone().container("app", |status| status.state = state)
    };
    assert!(is_dropped(&waiting("CrashLoopBackOff")));
    assert!(!is_dropped(&waiting("ImagePullBackOff")));
    let over = down.exited("app", 0, RestartPolicy::Never);
    assert!(!is_dropped(&over));
}

#[test]
fn a_crashed_container_is_brought_back_at_once_only_by_force() {
    let crashed = names(&["app"])
        .recreating()
        .ordered("app", Progress::Refused(Refusal::AlreadyExited))
        .down("app", 1);
    assert!(plan(&crashed, at(2)).removals().is_empty());
    let forced = crashed.with(|snapshot| snapshot.crr.strategy.is_forced = true);
    assert_eq!(plan(&forced, at(2)).removals().len(), 1);
}

#[test]
fn a_static_pod_is_ordered_by_the_uid_that_its_node_knows() {
    let mirror = names(&["app"])
        .recreating()
        .pod(|pod| pod.static_uid = Some("hash".into()));
    let planned = plan(&mirror, at(0));
    let (order, _) = planned.stop().unwrap();
    assert_eq!(order.instance.pod_uid.as_str(), "hash");
}

#[test]
fn new_instances_are_told_with_the_writes_there_are_anyway() {
    let one = names(&["app"]).recreating().killed("app").back("app");
    let status = plan(&one, at(1)).status().unwrap().clone();
    let told: Vec<_> = status
        .snapshot
        .iter()
        .map(|entry| (entry.name.as_str(), entry.is_ready, entry.restart_count))
        .collect();
    assert_eq!(told, [("app", true, 1)]);
}

//! The machine under events in orders that the API server and the bus allow.

use model::phase::CrrPhase;
use testkit::{CrrBuilder, at, pod, report, web};

use super::*;
use crate::{snapshot::Turn, write::Write};

/// A machine that has listed these CRRs, and what it did then.
fn listed(crrs: &[CrrBuilder]) -> (Machine, Vec<Effect>) {
    let mut machine = Machine::new();
    machine.on_event(Event::CrrListBegun, at(0));
    for crr in crrs {
        assert_eq!(
            writes(&machine.see(crr)),
            [""; 0],
            "the list is not complete"
        );
    }
    let effects = machine.on_event(Event::CrrListEnded, at(0));
    (machine, effects)
}

fn request(name: &str, uid: &str, version: &str) -> CrrBuilder {
    testkit::crr(&["main"]).named(name, uid).version(version)
}

fn key(name: &str) -> CrrKey {
    request(name, "", "").build().key
}

/// The names of the CRRs that are written.
fn writes(effects: &[Effect]) -> Vec<&str> {
    let mut writes = Vec::new();
    for effect in effects {
        if let Effect::Write { crr, .. } = effect {
            writes.push(crr.key.name.as_str());
        }
    }
    writes
}

impl Machine {
    fn see(&mut self, crr: &CrrBuilder) -> Vec<Effect> {
        self.on_event(Event::CrrSeen(Box::new(crr.clone().build())), at(0))
    }

    fn written(&mut self, crr: &CrrBuilder, result: WriteResult) -> Vec<Effect> {
        let crr = crr.clone().build();
        let event = Event::Written {
            crr: crr.key,
            uid: crr.uid,
            result,
        };
        self.on_event(event, at(0))
    }

    fn is_writing(&self, name: &str) -> bool {
        let entry = self.crrs.get(&key(name)).unwrap();
        matches!(entry.request, Request::UnderWay { .. })
    }

    fn turn_of(&self, name: &str) -> Turn {
        self.turn(&key(name))
    }
}

fn stored(crr: &CrrBuilder) -> WriteResult {
    WriteResult::Crr(Some(Box::new(crr.clone().build())))
}

#[test]
fn nothing_is_written_before_the_list_is_complete() {
    let (machine, effects) = listed(&[request("a", "1", "1")]);
    assert_eq!(writes(&effects), ["a"]);
    assert!(machine.is_writing("a"));
}

#[test]
fn one_write_is_under_way_at_a_time() {
    let (first, second) = (request("a", "1", "1"), request("a", "1", "2"));
    let (mut machine, _) = listed(&[first]);
    assert_eq!(writes(&machine.see(&second)), [""; 0]);
}

#[test]
fn a_conflict_with_what_was_seen_already_is_planned_for_at_once() {
    let (first, second) = (request("a", "1", "1"), request("a", "1", "2"));
    let (mut machine, _) = listed(std::slice::from_ref(&first));
    machine.see(&second);
    let effects = machine.written(&first, WriteResult::Conflict);
    assert_eq!(writes(&effects), ["a"], "the newer object is written");
}

#[test]
fn a_conflict_with_what_was_not_seen_yet_waits_for_it() {
    let (first, second) = (request("a", "1", "1"), request("a", "1", "2"));
    let (mut machine, _) = listed(std::slice::from_ref(&first));
    machine.written(&first, WriteResult::Conflict);
    assert!(!machine.is_writing("a"), "the same write would fail again");
    assert_eq!(writes(&machine.see(&second)), ["a"]);
}

#[test]
fn a_failed_write_is_retried_after_pauses_that_double() {
    let crr = request("a", "1", "1");
    let (mut machine, _) = listed(std::slice::from_ref(&crr));
    let mut now = 0;
    for pause in [1_000, 2_000, 4_000] {
        let crr = crr.clone().build();
        let event = Event::Written {
            crr: crr.key,
            uid: crr.uid,
            result: WriteResult::Failed,
        };
        machine.on_event(event, at(now));
        now += pause;
        assert_eq!(machine.next_deadline(), Some(at(now).monotonic));
        assert_eq!(writes(&machine.on_event(Event::Tick, at(now))), ["a"]);
    }
}

#[test]
fn an_answer_for_a_deleted_request_does_not_concern_its_namesake() {
    let (old, new) = (request("a", "1", "1"), request("a", "2", "5"));
    let (mut machine, _) = listed(std::slice::from_ref(&old));
    machine.on_event(Event::CrrGone(key("a")), at(0));
    machine.see(&new);
    machine.written(&old, stored(&request("a", "1", "4")));
    let entry = machine.crrs.get(&key("a")).unwrap();
    assert_eq!(entry.crr.uid.as_str(), "2");
    assert!(machine.is_writing("a"));
    assert_eq!(machine.crrs.keys_of(&web()).len(), 1);
}

#[test]
fn an_ended_request_is_known_until_the_watch_has_come_to_its_end() {
    let ended = request("a", "1", "1").phase(CrrPhase::Completed);
    let closed = request("a", "1", "2").phase(CrrPhase::Completed).closed();
    let (mut machine, effects) = listed(std::slice::from_ref(&ended));
    assert_eq!(writes(&effects), ["a"], "its label goes");
    machine.written(&ended, stored(&closed));
    // The watch is behind.
    assert_eq!(writes(&machine.see(&ended)), [""; 0], "its label is gone");
    machine.see(&closed);
    assert!(machine.is_empty(), "nothing is left to do");
}

#[test]
fn a_namesake_that_only_a_new_list_shows_takes_the_place() {
    let (mut machine, _) = listed(&[request("a", "1", "1")]);
    let effects = machine.see(&request("a", "2", "5"));
    assert!(machine.crrs.owner(&testkit::stop_id("main")).is_none());
    assert_eq!(writes(&effects), ["a"]);
}

#[test]
fn a_request_that_a_new_list_does_not_show_is_gone() {
    let (mut machine, _) = listed(&[request("a", "1", "1"), request("b", "2", "2")]);
    machine.on_event(Event::CrrListBegun, at(0));
    machine.on_event(Event::CrrUnreadable(key("b")), at(0));
    let effects = machine.on_event(Event::CrrListEnded, at(0));
    assert!(matches!(&effects[0], Effect::Ended { crr, .. } if crr.key == key("a")));
    assert_eq!(
        machine.crrs.keys(),
        [key("b")].into(),
        "one that cannot be read stays"
    );
}

#[test]
fn a_new_leader_goes_on_with_the_request_at_work() {
    let waiting = request("a", "1", "1").phase(CrrPhase::Pending);
    let at_work = request("b", "2", "2").phase(CrrPhase::Recreating);
    let (machine, _) = listed(&[waiting, at_work]);
    assert_eq!(machine.turn_of("a"), Turn::Behind("b".into()));
    assert_eq!(machine.turn_of("b"), Turn::Mine);
}

#[test]
fn a_request_that_has_begun_keeps_its_turn_when_an_older_one_appears() {
    let (mut machine, effects) = listed(&[request("b", "2", "2").created_at(5)]);
    assert_eq!(writes(&effects), ["b"], "its beginning is under way");
    machine.see(&request("a", "1", "1"));
    assert_eq!(machine.turn_of("a"), Turn::Behind("b".into()));
    assert_eq!(machine.turn_of("b"), Turn::Mine);
}

#[test]
fn a_wake_up_while_a_write_is_under_way_is_used_up() {
    let (mut machine, _) = listed(&[request("a", "1", "1")]);
    machine.wakes.set(&key("a"), Some(at(0).monotonic));
    machine.on_event(Event::Tick, at(0));
    assert_eq!(machine.next_deadline(), None, "the loop would never sleep");
}

#[test]
fn a_report_of_another_nodes_order_is_ignored() {
    let (mut machine, _) = listed(&[request("a", "1", "1")]);
    let outcome = model::order::Outcome::Gone;
    let mut answer_to = |node: &str| {
        let event = Event::Reported {
            report: Box::new(report("main", "main-0", 1, outcome.clone())),
            node: node.into(),
            reply: ReplyToken(7),
        };
        machine.on_event(event, at(0)).remove(0)
    };
    assert_eq!(answer_to("node-2"), Effect::Ignore(ReplyToken(7)));
    assert_eq!(answer_to("node-1"), Effect::Acknowledge(ReplyToken(7)));
}

/// The request is drained: finalizer, then the gate.
fn shutting() -> (Machine, CrrBuilder) {
    let crr = request("a", "1", "1").drained(std::time::Duration::from_secs(3));
    let held = crr.held();
    let (mut machine, effects) = listed(std::slice::from_ref(&held));
    assert!(effects.contains(&Effect::WatchPod(web())));
    let seen = Event::PodSeen {
        pod: web(),
        view: view("5"),
    };
    let effects = machine.on_event(seen, at(0));
    let is_gate = |effect: &Effect| matches!(effect, Effect::Write { write, .. } if matches!(**write, Write::Gate(_)));
    assert!(effects.iter().any(is_gate));
    (machine, held)
}

fn view(version: &str) -> PodView {
    let pod = pod(&["main"]).gated(Some(true), "[]").version(version);
    PodView::Present(Box::new(pod.build()))
}

#[test]
fn the_answer_to_a_gate_write_is_planned_for_though_a_newer_pod_was_seen() {
    let (mut machine, crr) = shutting();
    let newer = Event::PodSeen {
        pod: web(),
        view: view("9"),
    };
    machine.on_event(newer, at(0));
    assert_eq!(
        writes(&machine.written(&crr, WriteResult::Gate(Some(view("6"))))),
        ["a"]
    );
    let PodView::Present(pod) = &machine.pods[&web()] else {
        panic!("the pod is there");
    };
    assert_eq!(pod.version, "9");
}

#[test]
fn a_gate_write_that_meets_a_newer_pod_is_retried() {
    let (mut machine, crr) = shutting();
    machine.written(&crr, WriteResult::Conflict);
    assert_eq!(machine.next_deadline(), Some(at(1_000).monotonic));
    assert_eq!(writes(&machine.on_event(Event::Tick, at(1_000))), ["a"]);
}

#[test]
fn a_new_leader_keeps_an_ended_request_until_its_gate_is_open() {
    let ended = request("a", "1", "1").phase(CrrPhase::Completed).held();
    let (mut machine, effects) = listed(std::slice::from_ref(&ended));
    assert!(effects.contains(&Effect::WatchPod(web())));
    let shut = r#"[{"userAgent":"ContainerRecreateRequest","key":"shop/a"}]"#;
    let pod = pod(&["main"]).gated(Some(false), shut).build();
    let seen = Event::PodSeen {
        pod: web(),
        view: PodView::Present(Box::new(pod)),
    };
    assert_eq!(writes(&machine.on_event(seen, at(0))), ["a"], "it opens");
}

#[test]
fn an_answer_that_does_not_decode_is_planned_for() {
    let (first, second) = (request("a", "1", "1"), request("a", "1", "2"));
    let (mut machine, _) = listed(std::slice::from_ref(&first));
    machine.see(&second);
    assert_eq!(
        writes(&machine.written(&first, WriteResult::Crr(None))),
        ["a"]
    );
}

#[test]
fn the_late_answer_to_a_gate_write_brings_no_earlier_pod_back() {
    let (mut machine, crr) = shutting();
    let gone = Event::PodSeen {
        pod: web(),
        view: PodView::Gone,
    };
    machine.on_event(gone, at(0));
    machine.written(&crr, WriteResult::Gate(Some(view("6"))));
    assert_eq!(machine.pods[&web()], PodView::Gone);
}

//! Sending, answers, silence and reports in every order.

use model::order::Instance;

use super::*;

fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(milliseconds).unwrap()
}

fn wanted() -> StopOrder {
    StopOrder {
        id: "stop/1/app".into(),
        attempt: 0,
        instance: Instance {
            namespace: "shop".into(),
            pod: "web".into(),
            pod_uid: "uid".into(),
            container: "app".into(),
            container_id: "old".into(),
            restart_count: 0,
        },
        grace: Duration::from_secs(30),
        pre_stop: None,
        begin_within: None,
        reason: "test".to_owned(),
    }
}

fn report(sequence: u32, outcome: StopOutcome) -> StopReport {
    let StopOrder { id, instance, .. } = wanted();
    StopReport {
        order: id,
        attempt: 1,
        sequence,
        instance,
        outcome,
    }
}

fn progress(book: &OrderBook) -> OrderProgress {
    book.known(&wanted().id).unwrap().progress
}

#[test]
fn sends_once_and_again_only_when_due() {
    let mut book = OrderBook::default();
    assert_eq!(book.send_due(&wanted(), at(0)).unwrap().attempt, 1);
    assert_eq!(book.send_due(&wanted(), at(1)), None);
    book.on_silence(&wanted().id, Silence::Node, at(10));
    assert_eq!(book.send_due(&wanted(), at(2009)), None);
    assert_eq!(book.send_due(&wanted(), at(2010)).unwrap().attempt, 2);
}

/// A forced request behind another: the instance that it named is gone, and the node has said which is there.
#[test]
fn a_refused_order_of_another_instance_now_is_sent_at_once() {
    let mut book = OrderBook::default();
    book.send_due(&wanted(), at(0));
    let refusal = Refusal::OtherInstance {
        container_id: "new".into(),
        restart_count: 1,
    };
    book.on_answer(&wanted().id, OrderAnswer::Refused(refusal), at(10));
    assert_eq!(book.send_due(&wanted(), at(11)), None);
    let mut retargeted = wanted();
    retargeted.instance.container_id = "new".into();
    assert_eq!(book.send_due(&retargeted, at(12)).unwrap().attempt, 2);
    assert_eq!(book.send_due(&retargeted, at(13)), None);
}

#[test]
fn a_clock_that_is_set_back_puts_no_order_off() {
    let hour = 3_600_000;
    for answer in [
        None,
        Some(OrderAnswer::Accepted),
        Some(OrderAnswer::Refused(Refusal::NoSuchPod)),
    ] {
        let mut book = OrderBook::default();
        book.send_due(&wanted(), at(hour));
        match answer {
            Some(answer) => book.on_answer(&wanted().id, answer, at(hour + 10)),
            None => book.on_silence(&wanted().id, Silence::Node, at(hour + 10)),
        }
        assert_eq!(book.send_due(&wanted(), at(5_000)).unwrap().attempt, 2);
        // Once: by the new clock it pauses as by the old one.
        assert_eq!(book.send_due(&wanted(), at(5_001)), None);
        assert_eq!(book.send_again_at(&wanted().id), Some(at(10_000)));
    }
}

#[test]
fn counts_silence_from_its_beginning() {
    let mut book = OrderBook::default();
    book.send_due(&wanted(), at(0));
    for now in [10, 3000, 6000] {
        book.on_silence(&wanted().id, Silence::Node, at(now));
    }
    assert_eq!(
        progress(&book),
        OrderProgress::Unanswered {
            since: at(10),
            silence: Silence::Node
        }
    );
    book.on_silence(&wanted().id, Silence::Bus, at(7000));
    assert_eq!(
        progress(&book),
        OrderProgress::Unanswered {
            since: at(7000),
            silence: Silence::Bus
        }
    );
}

#[test]
fn silence_after_an_acceptance_unsays_nothing_but_asks_again() {
    let mut book = OrderBook::default();
    book.send_due(&wanted(), at(0));
    book.on_answer(&wanted().id, OrderAnswer::Accepted, at(10));
    assert_eq!(book.send_again_at(&wanted().id), Some(at(5010)));
    assert!(book.send_due(&wanted(), at(5010)).is_some());
    book.on_silence(&wanted().id, Silence::Node, at(5020));
    assert_eq!(progress(&book), OrderProgress::Accepted);
}

#[test]
fn a_result_is_final_whatever_comes_late() {
    let mut book = OrderBook::default();
    book.send_due(&wanted(), at(0));
    let stopped = StopOutcome::Stopped { hook_error: None };
    book.on_report(&report(2, stopped.clone()));
    book.on_report(&report(1, StopOutcome::Gone));
    book.on_answer(&wanted().id, OrderAnswer::Accepted, at(10));
    book.on_silence(&wanted().id, Silence::Node, at(20));
    assert_eq!(progress(&book), OrderProgress::Done(stopped));
    assert_eq!(book.send_due(&wanted(), at(60_000)), None);
    assert_eq!(book.send_again_at(&wanted().id), None);
}

#[test]
fn a_report_of_an_unknown_order_is_no_error() {
    let mut book = OrderBook::default();
    book.on_report(&report(1, StopOutcome::Gone));
    assert!(book.is_empty());
}

/// A forced stop may have been of a newer instance than the fence's; without that, its own successor is waited for.
#[test]
fn a_new_leader_learns_which_instance_was_stopped() {
    let mut book = OrderBook::default();
    book.send_due(&wanted(), at(0));
    let done = OrderAnswer::Done {
        container_id: "newer".into(),
        outcome: StopOutcome::Stopped { hook_error: None },
    };
    book.on_answer(&wanted().id, done, at(10));
    let known = book.known(&wanted().id).unwrap();
    assert_eq!(known.target, ContainerId::new("newer"));
}

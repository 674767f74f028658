//! Sending, answers, silence and reports in every order.

use testkit::{at, monotonic, removal, removal_id, report, stop, stop_id};

use super::*;

fn stopped() -> Outcome {
    Outcome::Stopped { hook_error: None }
}

/// A book that has sent the stop of `app` at 0 ms.
fn sent() -> OrderBook {
    let mut book = OrderBook::default();
    let sending = book.send_due(&stop("app", "old"), monotonic(0)).unwrap();
    assert_eq!(sending.attempt, 1);
    book
}

/// Which attempt is sent then, if any.
fn attempt_at(book: &mut OrderBook, milliseconds: u64) -> Option<u32> {
    let sending = book.send_due(&stop("app", "old"), monotonic(milliseconds));
    sending.map(|sending| sending.attempt)
}

fn progress(book: &OrderBook) -> &Progress {
    &book.known(&stop_id("app")).unwrap().progress
}

#[test]
fn sends_once_and_again_only_when_due() {
    let mut book = sent();
    assert_eq!(attempt_at(&mut book, 1), None);
    book.on_silence(&stop_id("app"), Silence::Node, at(10));
    assert_eq!(attempt_at(&mut book, 2009), None);
    assert_eq!(attempt_at(&mut book, 2010), Some(2));
}

/// A forced request behind another: the instance that it named is gone, and the node named the one that is there.
#[test]
fn a_refused_order_of_another_instance_now_is_sent_at_once() {
    let mut book = sent();
    let refusal = Refusal::OtherInstance {
        container_id: "new".into(),
        restart_count: 1,
    };
    book.on_answer(&stop_id("app"), Answer::Refused(refusal), monotonic(10));
    assert_eq!(attempt_at(&mut book, 11), None);
    let retargeted = stop("app", "new");
    assert_eq!(
        book.send_due(&retargeted, monotonic(12)).unwrap().attempt,
        2
    );
    assert_eq!(book.send_due(&retargeted, monotonic(13)), None);
}

#[test]
fn the_wall_clock_moves_no_sending() {
    let mut book = sent();
    let mut set_back = at(10);
    set_back.wall = jiff::Timestamp::UNIX_EPOCH;
    book.on_silence(&stop_id("app"), Silence::Node, set_back);
    assert_eq!(book.send_again_at(&stop_id("app")), Some(monotonic(2010)));
}

#[test]
fn counts_silence_from_its_beginning() {
    let mut book = sent();
    for now in [10, 3000, 6000] {
        book.on_silence(&stop_id("app"), Silence::Node, at(now));
    }
    let unanswered = |since, silence| Progress::Unanswered { since, silence };
    assert_eq!(*progress(&book), unanswered(at(10), Silence::Node));
    book.on_silence(&stop_id("app"), Silence::Bus, at(7000));
    assert_eq!(*progress(&book), unanswered(at(7000), Silence::Bus));
}

#[test]
fn silence_after_an_acceptance_changes_nothing_but_is_asked_again() {
    let mut book = sent();
    book.on_answer(&stop_id("app"), Answer::Accepted, monotonic(10));
    assert_eq!(book.send_again_at(&stop_id("app")), Some(monotonic(5010)));
    assert_eq!(attempt_at(&mut book, 5010), Some(2));
    book.on_silence(&stop_id("app"), Silence::Node, at(5020));
    assert_eq!(*progress(&book), Progress::Accepted);
}

#[test]
fn the_result_of_a_stop_is_final() {
    let mut book = sent();
    book.on_report(&report("app", "old", 2, stopped()), monotonic(5));
    book.on_report(&report("app", "old", 1, Outcome::Gone), monotonic(6));
    book.on_answer(&stop_id("app"), Answer::Accepted, monotonic(10));
    book.on_silence(&stop_id("app"), Silence::Node, at(20));
    assert_eq!(*progress(&book), Progress::Done(stopped()));
    assert_eq!(attempt_at(&mut book, 60_000), None);
    assert_eq!(book.send_again_at(&stop_id("app")), None);
}

#[test]
fn a_report_of_an_unknown_order_is_no_error() {
    let mut book = OrderBook::default();
    book.on_report(&report("app", "old", 1, Outcome::Gone), monotonic(0));
    assert_eq!(book.count(), 0);
}

/// A forced stop may have been of a newer instance than the fence's; its own successor is waited for.
#[test]
fn a_new_leader_learns_which_instance_was_stopped() {
    let mut book = sent();
    let done = Answer::Done {
        container_id: Some("newer".into()),
        outcome: stopped(),
    };
    book.on_answer(&stop_id("app"), done, monotonic(10));
    let known = book.known(&stop_id("app")).unwrap();
    assert_eq!(known.target, ContainerId::new("newer"));
}

#[test]
fn a_removal_that_was_done_is_ordered_again_less_and_less_often() {
    let mut book = OrderBook::default();
    let (wanted, id) = (removal("app", "old"), removal_id("app"));
    let removed = Answer::Done {
        container_id: None,
        outcome: Outcome::Removed { count: 1 },
    };
    assert_eq!(book.send_due(&wanted, monotonic(0)).unwrap().attempt, 1);
    assert_eq!(book.send_due(&wanted, monotonic(10)), None);
    book.on_answer(&id, removed.clone(), monotonic(100));
    assert_eq!(book.done_at(&id), Some(monotonic(100)));
    assert_eq!(book.send_again_at(&id), Some(monotonic(5_100)));
    assert_eq!(book.send_due(&wanted, monotonic(5_100)).unwrap().attempt, 2);
    book.on_answer(&id, removed, monotonic(5_200));
    assert_eq!(book.send_again_at(&id), Some(monotonic(15_200)));
}

#[test]
fn a_removal_is_asked_again_soon_after_silence_and_refusals() {
    let mut book = OrderBook::default();
    let (wanted, id) = (removal("app", "old"), removal_id("app"));
    book.send_due(&wanted, monotonic(0));
    book.on_silence(&id, Silence::Node, at(3_000));
    assert_eq!(book.send_again_at(&id), Some(monotonic(5_000)));
    let unfinished = Refusal::StopUnfinished {
        order: stop_id("app"),
    };
    for (answered_at, refusal) in [(6_000, Refusal::StillRunning), (9_000, unfinished)] {
        book.on_answer(&id, Answer::Refused(refusal), monotonic(answered_at));
        assert_eq!(
            book.send_again_at(&id),
            Some(monotonic(answered_at + 2_000))
        );
        assert_eq!(book.done_at(&id), None);
    }
}

//! Who may act, and who has to wait.

use super::*;

fn one_at_a_time() -> Bench {
    Bench::with(Settings {
        max_concurrent_stops: 1,
        ..Settings::default()
    })
}

#[test]
fn what_has_no_slot_is_journaled_and_answered_but_waits() {
    let mut bench = one_at_a_time();
    let (first, second, third) = (order("1"), order("2"), order("3"));
    bench.begun(&first);
    assert_eq!(kinds(&bench.begun(&second)), ["store queued", "accepted"]);
    assert_eq!(kinds(&bench.begun(&third)), ["store queued", "accepted"]);
    assert_eq!((bench.machine.acting(), bench.machine.unfinished()), (1, 3));
    let effects = bench.stop_ended(&first, StopResult::Stopped, 5);
    assert_eq!(
        kinds(&effects),
        ["store finished false", "report 1", "inspect"]
    );
    assert!(
        matches!(effects.last(), Some(Effect::Inspect { order, .. }) if *order == second.id),
        "the oldest is next"
    );
    // The grace begins with the work, not with the waiting.
    assert_eq!(kinds(&bench.alive(&second, 40)), ["store begun", "stop 30"]);
}

#[test]
fn what_ended_while_it_waited_is_gone_and_the_next_is_let_in() {
    let mut bench = one_at_a_time();
    let (first, second, third) = (order("1"), hooked("2"), order("3"));
    bench.begun(&first);
    bench.begun(&second);
    bench.begun(&third);
    bench.stop_ended(&first, StopResult::Stopped, 5);
    let effects = bench.exited(&second, 6);
    assert_eq!(
        kinds(&effects),
        ["store finished false", "report 1", "inspect"]
    );
    assert_eq!(outcome(&bench.record(&second)), &StopOutcome::Gone);
}

#[test]
fn what_nobody_wants_any_more_when_its_turn_comes_is_not_begun() {
    for (limit, expected) in [
        (5, &["store finished false", "report 1"][..]),
        (6, &["store begun", "stop 30"]),
    ] {
        let mut bench = one_at_a_time();
        let first = order("1");
        let second = StopOrder {
            begin_within: Some(Duration::from_secs(limit)),
            ..order("2")
        };
        bench.begun(&first);
        bench.begun(&second);
        bench.stop_ended(&first, StopResult::Stopped, 5);
        assert_eq!(kinds(&bench.alive(&second, 6)), expected, "{limit} s");
    }
}

#[test]
fn who_asked_too_long_ago_has_to_ask_again() {
    let mut bench = Bench::new();
    let order = order("1");
    bench.ordered(&order, 0);
    assert_eq!(kinds(&bench.alive(&order, 11)), ["refused"]);
    bench.ordered(&order, 20);
    bench.ordered(&order, 25);
    let effects = bench.alive(&order, 34);
    assert_eq!(kinds(&effects)[..2], ["store begun", "accepted"]);
}

#[test]
fn a_newer_instance_is_never_touched_by_an_order_that_waited() {
    let mut bench = one_at_a_time();
    let (first, second) = (order("1"), hooked("2"));
    bench.begun(&first);
    bench.begun(&second);
    bench.stop_ended(&first, StopResult::Stopped, 5);
    let observed = Observed::Newest {
        container_id: "newer".into(),
        restart_count: 4,
        state: InstanceState::Alive,
    };
    bench.inspected(&second, observed, 6);
    assert_eq!(outcome(&bench.record(&second)), &StopOutcome::Gone);
}

#[test]
fn two_orders_for_one_instance_never_act_at_once() {
    let mut bench = Bench::new();
    let first = hooked("1");
    let second = StopOrder {
        instance: first.instance.clone(),
        ..hooked("2")
    };
    bench.begun(&first);
    assert_eq!(kinds(&bench.begun(&second)), ["store queued", "accepted"]);
    assert_eq!(
        kinds(&bench.begun(&order("3"))),
        ["store begun", "accepted", "stop 30"],
        "an order for another instance is not held up"
    );
    bench.hook_ended(&first, HookResult::Succeeded, 1);
    bench.stop_ended(&first, StopResult::Stopped, 2);
    bench.exited(&second, 3);
    assert_eq!(outcome(&bench.record(&second)), &StopOutcome::Gone);
}

#[test]
fn nothing_is_begun_while_draining_but_orders_are_kept() {
    let mut bench = one_at_a_time();
    let (first, second, third) = (order("1"), order("2"), order("3"));
    bench.begun(&first);
    bench.begun(&second);
    bench.ordered(&third, 1);
    bench.machine.on_event(Event::DrainBegun, at(1));
    assert_eq!(kinds(&bench.alive(&third, 1)), ["store queued", "accepted"]);
    let effects = bench.stop_ended(&first, StopResult::Stopped, 5);
    assert_eq!(kinds(&effects), ["store finished false", "report 1"]);
    assert_eq!((bench.machine.acting(), bench.machine.unfinished()), (0, 2));
}

#[test]
fn no_slots_at_all_still_means_one() {
    let mut bench = Bench::with(Settings {
        max_concurrent_stops: 0,
        ..Settings::default()
    });
    assert_eq!(
        kinds(&bench.begun(&order("1"))),
        ["store begun", "accepted", "stop 30"]
    );
}

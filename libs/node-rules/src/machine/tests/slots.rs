//! Slots: which stops act and which wait.

use super::*;

fn one_at_a_time() -> Bench {
    Bench::with(Settings {
        max_concurrent_stops: 1,
        ..Settings::default()
    })
}

#[test]
fn a_stop_without_a_slot_is_journaled_and_answered_but_waits() {
    let mut bench = one_at_a_time();
    let (first, second, third) = (order("1"), order("2"), order("3"));
    bench.begun(&first);
    assert_eq!(bench.begun(&second), ["store queued", "accepted"]);
    assert_eq!(bench.begun(&third), ["store queued", "accepted"]);
    assert_eq!((bench.machine.acting(), bench.machine.unfinished()), (1, 3));
    let effects = bench.stop_ended(&first, StopResult::Stopped, 5);
    assert_eq!(effects, ["store finished false", "report 1", "inspect"]);
    assert_eq!(bench.alive(&third, 40), NOTHING, "the oldest is next");
    // The grace begins with the work, not with the waiting.
    assert_eq!(bench.alive(&second, 40), ["store begun", "stop 30"]);
}

#[test]
fn an_instance_that_ended_during_the_wait_is_gone_and_the_next_stop_goes_on() {
    let mut bench = one_at_a_time();
    let (first, second, third) = (order("1"), hooked("2"), order("3"));
    bench.begun(&first);
    bench.begun(&second);
    bench.begun(&third);
    bench.stop_ended(&first, StopResult::Stopped, 5);
    let effects = bench.exited(&second, 6);
    assert_eq!(effects, ["store finished false", "report 1", "inspect"]);
    assert_eq!(bench.outcome(&second), Outcome::Gone);
}

#[test]
fn a_stop_past_its_time_to_begin_is_not_begun() {
    for (limit, expected) in [
        (6, &["store finished false", "report 1"][..]),
        (7, &["store begun", "stop 30"]),
    ] {
        let mut bench = one_at_a_time();
        let first = order("1");
        let second = with(order("2"), |stop| {
            stop.begin_within = Some(Duration::from_secs(limit));
        });
        bench.begun(&first);
        bench.begun(&second);
        bench.stop_ended(&first, StopResult::Stopped, 5);
        assert_eq!(bench.alive(&second, 6), expected, "{limit} s");
    }
}

#[test]
fn the_time_to_begin_is_that_of_the_last_sending() {
    let within = |seconds| {
        with(order("1"), |stop| {
            stop.begin_within = Some(Duration::from_secs(seconds));
        })
    };
    let mut bench = one_at_a_time();
    let (first, second) = (order("0"), within(5));
    bench.begun(&first);
    bench.ordered(&second, 0);
    bench.ordered(&within(100), 1);
    bench.alive(&second, 1);
    bench.stop_ended(&first, StopResult::Stopped, 20);
    assert_eq!(bench.alive(&second, 20), ["store begun", "stop 30"]);
}

#[test]
fn an_order_sent_too_long_ago_is_refused() {
    let mut bench = Bench::new();
    let order = order("1");
    bench.ordered(&order, 0);
    assert_eq!(bench.alive(&order, 11), ["refused"]);
    bench.ordered(&order, 20);
    bench.ordered(&order, 25);
    let effects = bench.alive(&order, 34);
    assert_eq!(effects[..2], ["store begun", "accepted"]);
}

#[test]
fn a_newer_instance_is_never_touched_by_an_order_that_waited() {
    let mut bench = one_at_a_time();
    let (first, second) = (order("1"), hooked("2"));
    bench.begun(&first);
    bench.begun(&second);
    bench.stop_ended(&first, StopResult::Stopped, 5);
    let newer = newest("newer", InstanceState::Alive);
    let effects = bench.inspected(&second, newer, at(6));
    assert_eq!(kinds(&effects), ["store finished false", "report 1"]);
    assert_eq!(bench.outcome(&second), Outcome::Gone);
}

#[test]
fn two_orders_for_one_instance_never_act_at_once() {
    let mut bench = Bench::new();
    let first = hooked("1");
    let second = Order {
        instance: first.instance.clone(),
        ..hooked("2")
    };
    bench.begun(&first);
    assert_eq!(bench.begun(&second), ["store queued", "accepted"]);
    assert_eq!(
        bench.begun(&order("3")),
        ["store begun", "accepted", "stop 30"],
        "an order for another instance is not held up"
    );
    bench.hook_ended(&first, HookResult::Succeeded, 1);
    bench.stop_ended(&first, StopResult::Stopped, 2);
    bench.exited(&second, 3);
    assert_eq!(bench.outcome(&second), Outcome::Gone);
}

#[test]
fn nothing_is_begun_while_draining_but_orders_are_kept() {
    let mut bench = one_at_a_time();
    let (first, second, third) = (order("1"), order("2"), order("3"));
    bench.begun(&first);
    bench.begun(&second);
    bench.ordered(&third, 1);
    bench.happens(Event::DrainBegun, 1);
    assert_eq!(bench.alive(&third, 1), ["store queued", "accepted"]);
    let effects = bench.stop_ended(&first, StopResult::Stopped, 5);
    assert_eq!(effects, ["store finished false", "report 1"]);
    assert_eq!((bench.machine.acting(), bench.machine.unfinished()), (0, 2));
}

#[test]
fn no_slots_at_all_still_means_one() {
    let mut bench = Bench::with(Settings {
        max_concurrent_stops: 0,
        ..Settings::default()
    });
    assert_eq!(
        bench.begun(&order("1")),
        ["store begun", "accepted", "stop 30"]
    );
}

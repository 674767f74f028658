//! Removals of dead instances, alone and beside stops.

use testkit::{removal, removal_id, stop_id};

use super::*;

fn dead(container_id: &str) -> Vec<ListedInstance> {
    vec![ListedInstance {
        container_id: container_id.into(),
        restart_count: 0,
        created_at: 0,
        state: InstanceState::Exited,
    }]
}

fn listed(bench: &mut Bench, container: &str, listed: Vec<ListedInstance>) -> Effects {
    let (order, listed) = (removal_id(container), Ok(listed));
    let event = Event::InstancesListed { order, listed };
    bench.machine.on_event(event, at(1))
}

fn ended(bench: &mut Bench, container: &str, result: Result<u32, String>) -> Effects {
    let order = removal_id(container);
    let event = Event::RemovalEnded { order, result };
    bench.machine.on_event(event, at(2))
}

fn answered(token: u64, answer: Answer) -> Effects {
    Effects {
        answers: vec![(ReplyToken(token), answer)],
        ..Effects::default()
    }
}

fn removed(count: u32) -> Answer {
    Answer::Done {
        container_id: None,
        outcome: Outcome::Removed { count },
    }
}

fn away(message: &str) -> Answer {
    let message = message.to_owned();
    Answer::Refused(Refusal::RuntimeUnavailable { message })
}

#[test]
fn lists_removes_answers_and_forgets() {
    let mut bench = Bench::new();
    assert_eq!(bench.ordered(&removal("app", "c"), 0), ["list"]);
    assert!(bench.machine.is_known(&removal_id("app")));
    assert_eq!(ended(&mut bench, "app", Ok(1)), Effects::default());
    let remove = Action::RemoveInstances {
        order: removal_id("app"),
        instance: testkit::instance("app", "c"),
        container_ids: vec!["c".into()],
    };
    assert_eq!(listed(&mut bench, "app", dead("c")).actions, [remove]);
    assert_eq!(listed(&mut bench, "app", dead("c")), Effects::default());
    assert_eq!(ended(&mut bench, "app", Ok(1)), answered(1, removed(1)));
    assert!(!bench.machine.is_known(&removal_id("app")));
    assert_eq!(bench.machine.records().count(), 0, "nothing is journaled");
    assert_eq!(ended(&mut bench, "app", Ok(1)), Effects::default());
    assert_eq!(bench.ordered(&removal("app", "c"), 3), ["list"]);
    let done_before = listed(&mut bench, "app", Vec::new());
    assert_eq!(done_before, answered(2, removed(0)));
}

#[test]
fn a_runtime_that_does_not_answer_is_a_refusal() {
    let mut bench = Bench::new();
    bench.ordered(&removal("app", "c"), 0);
    let event = Event::InstancesListed {
        order: removal_id("app"),
        listed: Err("broken pipe".to_owned()),
    };
    let effects = bench.machine.on_event(event, at(1));
    assert_eq!(effects, answered(1, away("broken pipe")));
    bench.ordered(&removal("app", "c"), 1);
    listed(&mut bench, "app", dead("c"));
    let effects = ended(&mut bench, "app", Err("broken pipe".to_owned()));
    assert_eq!(effects, answered(2, away("broken pipe")));
}

#[test]
fn the_same_removal_under_way_only_adds_a_requester() {
    let mut bench = Bench::new();
    bench.ordered(&removal("app", "c"), 0);
    assert_eq!(bench.ordered(&removal("app", "c"), 0), NOTHING);
    listed(&mut bench, "app", dead("c"));
    assert_eq!(bench.ordered(&removal("app", "c"), 1), NOTHING);
    let other_instance = bench.ordered(&removal("app", "d"), 1);
    assert_eq!(other_instance, ["refused"]);
    let effects = ended(&mut bench, "app", Ok(1));
    assert_eq!(kinds(&effects), ["done", "done", "done"]);
}

#[test]
fn only_so_many_are_under_way_and_the_others_wait_in_their_order() {
    let mut bench = Bench::with(Settings {
        max_concurrent_removals: 1,
        ..Settings::default()
    });
    let names = ["c", "a", "b"];
    let begun = names.map(|name| bench.ordered(&removal(name, name), 0).len());
    assert_eq!(begun, [1, 0, 0]);
    assert_eq!(kinds(&listed(&mut bench, "c", dead("c"))), ["remove 1"]);
    assert_eq!(kinds(&ended(&mut bench, "c", Ok(1))), ["done", "list"]);
    assert_eq!(listed(&mut bench, "b", Vec::new()), Effects::default());
    let effects = listed(&mut bench, "a", Vec::new());
    assert_eq!(kinds(&effects), ["done", "list"]);
    assert_eq!(kinds(&listed(&mut bench, "b", Vec::new())), ["done"]);
}

#[test]
fn an_unfinished_stop_of_the_container_forbids_a_removal() {
    let mut bench = Bench::new();
    let stop = hooked("app");
    bench.begun(&stop);
    bench.ordered(&removal("app", "app"), 1);
    let refusal = Refusal::StopUnfinished {
        order: stop_id("app"),
    };
    let effects = listed(&mut bench, "app", dead("app"));
    assert_eq!(effects, answered(2, Answer::Refused(refusal)));
    bench.ordered(&removal("proxy", "proxy"), 1);
    let of_another_container = listed(&mut bench, "proxy", dead("proxy"));
    assert_eq!(kinds(&of_another_container), ["remove 1"]);
    let mut of_another_pod = removal("app", "app");
    of_another_pod.instance.pod_uid = "another".into();
    bench.ordered(&of_another_pod, 1);
    let effects = listed(&mut bench, "app", dead("app"));
    assert_eq!(kinds(&effects), ["remove 1"]);
    assert_eq!(ended(&mut bench, "app", Ok(1)), answered(4, removed(1)));
    bench.hook_ended(&stop, HookResult::Succeeded, 1);
    bench.stop_ended(&stop, StopResult::Stopped, 1);
    bench.ordered(&removal("app", "app"), 2);
    let effects = listed(&mut bench, "app", dead("app"));
    assert_eq!(kinds(&effects), ["remove 1"], "the stop has ended");
}

/// It names a newer instance than any that the removal removes.
#[test]
fn a_stop_accepted_during_a_removal_is_not_held_up() {
    let mut bench = Bench::new();
    bench.ordered(&removal("app", "old"), 0);
    let effects = listed(&mut bench, "app", dead("old"));
    assert_eq!(kinds(&effects), ["remove 1"]);
    let stop = testkit::stop("app", "new");
    let effects = bench.begun(&stop);
    assert_eq!(effects, ["store begun", "accepted", "stop 30"]);
    assert_eq!(ended(&mut bench, "app", Ok(1)), answered(1, removed(1)));
    bench.stop_ended(&stop, StopResult::Stopped, 3);
    assert_eq!(bench.outcome(&stop), stopped(None));
}

/// The stop's inspection is older than the list: the instance ended on its own in between.
#[test]
fn a_stop_of_an_instance_that_is_being_removed_ends_as_gone() {
    let mut bench = Bench::new();
    let stop = order("app");
    bench.ordered(&stop, 0);
    bench.ordered(&removal("app", "app"), 0);
    let effects = listed(&mut bench, "app", dead("app"));
    assert_eq!(kinds(&effects), ["remove 1"]);
    bench.alive(&stop, 1);
    assert_eq!(kinds(&ended(&mut bench, "app", Ok(1))), ["done"]);
    bench.stop_ended(&stop, StopResult::NotFound, 2);
    assert_eq!(bench.outcome(&stop), Outcome::Gone);
}

#[test]
fn a_stop_accepted_before_the_list_forbids_a_removal_of_its_container() {
    let mut bench = Bench::new();
    bench.ordered(&removal("app", "app"), 0);
    bench.begun(&order("app"));
    let effects = listed(&mut bench, "app", dead("app"));
    assert_eq!(kinds(&effects), ["refused"]);
}

#[test]
fn draining_ends_what_is_under_way_and_refuses_the_rest() {
    let mut bench = Bench::with(Settings {
        max_concurrent_removals: 1,
        ..Settings::default()
    });
    bench.ordered(&removal("a", "a"), 0);
    bench.ordered(&removal("b", "b"), 0);
    assert_eq!(bench.happens(Event::DrainBegun, 1), ["refused"]);
    assert_eq!(bench.ordered(&removal("c", "c"), 1), ["refused"]);
    assert_eq!(kinds(&listed(&mut bench, "a", dead("a"))), ["remove 1"]);
    assert_eq!(kinds(&ended(&mut bench, "a", Ok(1))), ["done"]);
}

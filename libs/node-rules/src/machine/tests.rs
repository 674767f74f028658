//! The machine's rules, case by case. Slots, crashes, removals and properties have files of their own.

mod crash;
mod properties;
mod removals;
mod slots;

use std::time::Duration;

use model::{
    instances::{InstanceState, ListedInstance},
    order::{Order, Outcome, PreStop, Refusal, Report, Stop},
};

use super::*;
use crate::{
    event::{HookResult, StopResult},
    record::Stage,
};

const DAY: u64 = 24 * 3600;

/// Both clocks, so many seconds after the start.
fn at(seconds: u64) -> Now {
    testkit::at(seconds * 1000)
}

/// A stop without a hook, of a container and an instance of that name.
fn order(name: &str) -> Order {
    testkit::stop(name, name)
}

/// A stop with a hook.
fn hooked(name: &str) -> Order {
    with(order(name), |stop| {
        let command = vec!["drain".to_owned()];
        stop.pre_stop = Some(PreStop::Exec { command });
    })
}

fn with(mut order: Order, change: impl FnOnce(&mut Stop)) -> Order {
    if let Verb::Stop(stop) = &mut order.verb {
        change(stop);
    }
    order
}

fn newest(container_id: &str, state: InstanceState) -> Observed {
    Observed::Newest(ListedInstance {
        container_id: container_id.into(),
        restart_count: 0,
        created_at: 0,
        state,
    })
}

fn away() -> Observed {
    Observed::Unavailable {
        message: "connection refused".to_owned(),
    }
}

fn broken_pipe() -> StopResult {
    StopResult::Unavailable {
        message: "broken pipe".to_owned(),
    }
}

fn stopped(hook_error: Option<&str>) -> Outcome {
    Outcome::Stopped {
        hook_error: hook_error.map(str::to_owned),
    }
}

/// A machine with short calls for frequent steps.
struct Bench {
    machine: Machine,
    tokens: u64,
}

impl Bench {
    fn new() -> Self {
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        Self {
            machine: Machine::new(settings),
            tokens: 0,
        }
    }

    fn recovered(records: Vec<Record>, now: Now) -> (Self, Effects) {
        let mut bench = Self::new();
        let effects = bench.machine.on_event(Event::Recovered { records }, now);
        (bench, effects)
    }

    fn happens(&mut self, event: Event, seconds: u64) -> Vec<String> {
        kinds(&self.machine.on_event(event, at(seconds)))
    }

    fn send(&mut self, order: &Order, attempt: u32, now: Now) -> Effects {
        self.tokens += 1;
        let order = order.clone();
        let event = Event::Ordered {
            sending: Sending { order, attempt },
            traceparent: None,
            reply: ReplyToken(self.tokens),
        };
        self.machine.on_event(event, now)
    }

    fn sent(&mut self, order: &Order, attempts: [u32; 2], seconds: u64) {
        for attempt in attempts {
            drop(self.send(order, attempt, at(seconds)));
        }
    }

    fn ordered(&mut self, order: &Order, seconds: u64) -> Vec<String> {
        kinds(&self.send(order, 1, at(seconds)))
    }

    fn inspected(&mut self, order: &Order, observed: Observed, now: Now) -> Effects {
        let order = order.id.clone();
        self.machine
            .on_event(Event::Inspected { order, observed }, now)
    }

    fn alive(&mut self, order: &Order, seconds: u64) -> Vec<String> {
        let observed = newest(order.instance.container_id.as_str(), InstanceState::Alive);
        kinds(&self.inspected(order, observed, at(seconds)))
    }

    fn exited(&mut self, order: &Order, seconds: u64) -> Vec<String> {
        let observed = newest(order.instance.container_id.as_str(), InstanceState::Exited);
        kinds(&self.inspected(order, observed, at(seconds)))
    }

    fn hook_ended(&mut self, order: &Order, result: HookResult, seconds: u64) -> Vec<String> {
        let order = order.id.clone();
        self.happens(Event::HookEnded { order, result }, seconds)
    }

    fn stop_ended(&mut self, order: &Order, result: StopResult, seconds: u64) -> Vec<String> {
        let order = order.id.clone();
        self.happens(Event::StopEnded { order, result }, seconds)
    }

    fn acknowledged(&mut self, order: &Order, seconds: u64) -> Vec<String> {
        let (order, sequence) = (order.id.clone(), 1);
        self.happens(Event::ReportAcknowledged { order, sequence }, seconds)
    }

    fn report_failed(&mut self, order: &Order, seconds: u64) -> Vec<String> {
        let (order, sequence) = (order.id.clone(), 1);
        self.happens(Event::ReportFailed { order, sequence }, seconds)
    }

    fn tick(&mut self, seconds: u64) -> Vec<String> {
        self.happens(Event::Tick, seconds)
    }

    /// Brings an order to the point where its hook runs or its stop is sent, at second 0.
    fn begun(&mut self, order: &Order) -> Vec<String> {
        self.ordered(order, 0);
        self.alive(order, 0)
    }

    /// Brings an order to its end at second 5; the report is on its way.
    fn finished(&mut self, order: &Order) -> Vec<String> {
        self.begun(order);
        self.stop_ended(order, StopResult::Stopped, 5)
    }

    fn record(&self, order: &Order) -> Record {
        self.machine.record(&order.id).unwrap()
    }

    fn outcome(&self, order: &Order) -> Outcome {
        let stage = self.record(order).stage;
        let Stage::Finished { outcome, .. } = stage else {
            panic!("not finished: {stage:?}");
        };
        outcome
    }

    /// In how many seconds after `seconds` a tick is due.
    fn next_tick(&self, seconds: u64) -> Option<u64> {
        let deadline = self.machine.next_deadline(at(seconds))?;
        Some((deadline - at(seconds).monotonic).as_secs())
    }
}

/// The effects by kind, in the order in which they leave, with their main content.
fn kinds(effects: &Effects) -> Vec<String> {
    let stored = effects.store.iter().map(|record| match &record.stage {
        Stage::Queued => "store queued".to_owned(),
        Stage::Begun { .. } => "store begun".to_owned(),
        Stage::HookDone { .. } => "store hook done".to_owned(),
        Stage::Finished {
            is_acknowledged, ..
        } => format!("store finished {is_acknowledged}"),
    });
    let forgotten = effects.forget.iter().map(|_| "forget".to_owned());
    let answers = effects.answers.iter().map(|(_, answer)| match answer {
        Answer::Accepted => "accepted".to_owned(),
        Answer::Refused(_) => "refused".to_owned(),
        Answer::Done { .. } => "done".to_owned(),
    });
    let actions = effects.actions.iter().map(|action| match action {
        Action::Inspect { .. } => "inspect".to_owned(),
        Action::RunHook { limit, .. } => format!("hook {}", limit.as_secs()),
        Action::Stop { timeout, .. } => format!("stop {}", timeout.as_secs()),
        Action::ListInstances { .. } => "list".to_owned(),
        Action::RemoveInstances { container_ids, .. } => format!("remove {}", container_ids.len()),
        Action::Report(report) => format!("report {}", report.sequence),
    });
    stored
        .chain(forgotten)
        .chain(answers)
        .chain(actions)
        .collect()
}

const NOTHING: [&str; 0] = [];

#[test]
fn journals_before_it_answers_and_answers_before_it_acts() {
    let mut bench = Bench::new();
    let order = order("one");
    assert_eq!(bench.ordered(&order, 0), ["inspect"]);
    assert_eq!(
        bench.alive(&order, 0),
        ["store begun", "accepted", "stop 30"]
    );
    let effects = bench.stop_ended(&order, StopResult::Stopped, 3);
    assert_eq!(effects, ["store finished false", "report 1"]);
    assert_eq!(bench.outcome(&order), stopped(None));
}

#[test]
fn the_fence_lets_only_the_newest_and_living_instance_through() {
    let order = order("one");
    let other = Refusal::OtherInstance {
        container_id: "another".into(),
        restart_count: 0,
    };
    let unavailable = Refusal::RuntimeUnavailable {
        message: "connection refused".to_owned(),
    };
    for (observed, refusal) in [
        (Observed::NoPod, Refusal::NoSuchPod),
        (Observed::NoContainer, Refusal::NoSuchContainer),
        (newest("another", InstanceState::Alive), other),
        (newest("one", InstanceState::Exited), Refusal::AlreadyExited),
        (away(), unavailable),
    ] {
        let mut bench = Bench::new();
        bench.ordered(&order, 0);
        let expected = Effects {
            answers: vec![(ReplyToken(1), Answer::Refused(refusal))],
            ..Effects::default()
        };
        assert_eq!(bench.inspected(&order, observed, at(0)), expected);
        assert_eq!(bench.machine.unfinished(), 0);
        let again = bench.ordered(&order, 1);
        assert_eq!(again, ["inspect"], "a refused order may come again");
    }
}

#[test]
fn a_differing_restart_count_is_no_other_instance() {
    let mut bench = Bench::new();
    let mut order = order("one");
    order.instance.restart_count = 99;
    let effects = bench.begun(&order);
    assert_eq!(effects, ["store begun", "accepted", "stop 30"]);
}

#[test]
fn refuses_unusable_orders() {
    let unfenced = testkit::stop("one", "");
    let endless = with(order("one"), |stop| stop.grace = Duration::MAX);
    let removal = testkit::removal("one", "");
    for order in [unfenced, endless, removal] {
        let effects = Bench::new().send(&order, 1, at(0));
        let [(_, Answer::Refused(Refusal::Invalid { .. }))] = effects.answers.as_slice() else {
            panic!("{effects:?}");
        };
        assert_eq!(kinds(&effects), ["refused"]);
    }
}

#[test]
fn the_same_order_again_is_answered_and_never_done_twice() {
    let mut bench = Bench::new();
    let order = hooked("one");
    assert_eq!(bench.ordered(&order, 0), ["inspect"]);
    assert_eq!(bench.ordered(&order, 0), NOTHING);
    let effects = bench.alive(&order, 0);
    assert_eq!(effects, ["store begun", "accepted", "accepted", "hook 30"]);
    assert_eq!(bench.ordered(&order, 1), ["accepted"]);
    bench.hook_ended(&order, HookResult::Succeeded, 2);
    assert_eq!(bench.ordered(&order, 2), ["accepted"]);
    bench.stop_ended(&order, StopResult::Stopped, 3);
    assert_eq!(bench.ordered(&order, 4), ["done"]);
}

#[test]
fn the_hook_takes_its_time_from_the_grace_and_leaves_the_minimum() {
    for (hook_took, stop) in [
        (0, "stop 30"),
        (10, "stop 20"),
        (29, "stop 2"),
        (30, "stop 2"),
    ] {
        let mut bench = Bench::new();
        let order = hooked("one");
        assert_eq!(bench.begun(&order)[2..], ["hook 30"]);
        let effects = bench.hook_ended(&order, HookResult::Succeeded, hook_took);
        assert_eq!(effects, ["store hook done", stop]);
    }
}

#[test]
fn without_grace_there_is_no_hook_and_the_minimum_remains() {
    let order = with(hooked("one"), |stop| stop.grace = Duration::ZERO);
    let effects = Bench::new().begun(&order);
    assert_eq!(effects, ["store begun", "accepted", "stop 2"]);
}

#[test]
fn a_failed_hook_is_remembered_and_the_stop_goes_on() {
    let failed = HookResult::Failed {
        message: "exit code 7".to_owned(),
    };
    let cut_off = "the hook was cut off at the end of the grace";
    for (result, error) in [
        (HookResult::Succeeded, None),
        (failed, Some("exit code 7")),
        (HookResult::CutOff, Some(cut_off)),
    ] {
        let mut bench = Bench::new();
        let order = hooked("one");
        bench.begun(&order);
        bench.hook_ended(&order, result, 1);
        bench.stop_ended(&order, StopResult::Stopped, 2);
        assert_eq!(bench.outcome(&order), stopped(error));
    }
}

#[test]
fn a_failed_stop_is_judged_by_a_second_inspection() {
    let message = "shim is gone".to_owned();
    let failed = Outcome::Failed {
        message: message.clone(),
    };
    for (observed, expected) in [
        (newest("one", InstanceState::Exited), stopped(None)),
        (Observed::NoContainer, stopped(None)),
        (Observed::NoPod, stopped(None)),
        (newest("one", InstanceState::Alive), failed),
    ] {
        let mut bench = Bench::new();
        let order = order("one");
        bench.begun(&order);
        let message = message.clone();
        let effects = bench.stop_ended(&order, StopResult::Failed { message }, 1);
        assert_eq!(effects, ["inspect"]);
        let effects = bench.inspected(&order, observed, at(1));
        assert_eq!(kinds(&effects), ["store finished false", "report 1"]);
        assert_eq!(bench.outcome(&order), expected);
    }
}

#[test]
fn a_stop_of_an_unknown_instance_ends_as_gone() {
    let mut bench = Bench::new();
    let order = order("one");
    bench.begun(&order);
    bench.stop_ended(&order, StopResult::NotFound, 1);
    assert_eq!(bench.outcome(&order), Outcome::Gone);
}

#[test]
fn a_runtime_that_went_away_is_asked_until_it_answers() {
    let mut bench = Bench::new();
    let order = order("one");
    bench.begun(&order);
    assert_eq!(bench.stop_ended(&order, broken_pipe(), 10), NOTHING);
    let mut now = 10;
    for wait in [1, 2, 4, 8, 8] {
        assert_eq!(bench.next_tick(now), Some(wait));
        now += wait;
        assert_eq!(bench.tick(now - 1), NOTHING);
        assert_eq!(bench.tick(now), ["inspect"]);
        assert_eq!(kinds(&bench.inspected(&order, away(), at(now))), NOTHING);
    }
    bench.tick(now + 8);
    assert_eq!(bench.alive(&order, now + 8), ["stop 2"]);
    bench.stop_ended(&order, StopResult::Stopped, now + 9);
    assert_eq!(bench.outcome(&order), stopped(None));
}

#[test]
fn a_failed_stop_that_cannot_be_verified_is_sent_again() {
    let mut bench = Bench::new();
    let order = order("one");
    bench.begun(&order);
    let message = "timed out".to_owned();
    bench.stop_ended(&order, StopResult::Failed { message }, 1);
    assert_eq!(kinds(&bench.inspected(&order, away(), at(2))), NOTHING);
    assert_eq!(bench.tick(3), ["inspect"]);
    assert_eq!(bench.alive(&order, 3), ["stop 27"]);
}

#[test]
fn repeats_a_report_with_growing_delays_until_it_is_acknowledged() {
    let mut bench = Bench::new();
    let order = order("one");
    bench.finished(&order);
    let mut now = 5;
    for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
        assert_eq!(bench.report_failed(&order, now), NOTHING);
        assert_eq!(bench.next_tick(now), Some(wait));
        now += wait;
        assert_eq!(bench.tick(now), ["report 1"]);
    }
    let (id, sequence) = (order.id.clone(), 2);
    let of_another_report = Event::ReportAcknowledged {
        order: id,
        sequence,
    };
    assert_eq!(bench.happens(of_another_report, now), NOTHING);
    assert_eq!(bench.acknowledged(&order, now), ["store finished true"]);
    let second = bench.acknowledged(&order, now);
    assert_eq!(second, NOTHING, "a second one changes nothing");
}

/// Pauses and the grace are measured on the monotonic clock, the retention on the wall clock.
#[test]
fn a_wall_clock_that_is_set_puts_nothing_off_and_forgets_nothing() {
    let set_back = |seconds| Now {
        wall: testkit::wall(0),
        ..at(seconds)
    };
    let mut bench = Bench::new();
    let order = hooked("one");
    bench.begun(&order);
    let (id, result) = (order.id.clone(), HookResult::Succeeded);
    let event = Event::HookEnded { order: id, result };
    let effects = bench.machine.on_event(event, set_back(10));
    assert_eq!(kinds(&effects), ["store hook done", "stop 20"]);
    bench.stop_ended(&order, broken_pipe(), 3600);
    let effects = bench.machine.on_event(Event::Tick, set_back(3601));
    assert_eq!(kinds(&effects), ["inspect"]);
    bench.alive(&order, 3601);
    bench.stop_ended(&order, StopResult::Stopped, 3601);
    bench.report_failed(&order, 3601);
    let effects = bench.machine.on_event(Event::Tick, set_back(3602));
    assert_eq!(kinds(&effects), ["report 1"]);
    bench.acknowledged(&order, 3602);
    let effects = bench.machine.on_event(Event::Tick, set_back(3601 + DAY));
    assert_eq!(kinds(&effects), NOTHING);
    assert_eq!(bench.tick(3601 + DAY), ["forget"]);
}

#[test]
fn the_report_has_the_highest_attempt() {
    for (before, after) in [([1, 4], [2, 3]), ([1, 1], [4, 1])] {
        let mut bench = Bench::new();
        let order = order("one");
        bench.sent(&order, before, 0);
        bench.alive(&order, 0);
        bench.sent(&order, after, 1);
        let (id, result) = (order.id.clone(), StopResult::Stopped);
        let event = Event::StopEnded { order: id, result };
        let effects = bench.machine.on_event(event, at(2));
        let report = Report {
            attempt: 4,
            ..testkit::report("one", "one", 1, stopped(None))
        };
        assert_eq!(effects.actions, [Action::Report(report)]);
    }
}

#[test]
fn forgets_a_finished_order_only_when_acknowledged_and_old() {
    let mut bench = Bench::new();
    let order = order("one");
    bench.finished(&order);
    assert_eq!(bench.tick(5 + 2 * DAY), NOTHING, "not acknowledged");
    bench.acknowledged(&order, 6);
    assert_eq!(bench.next_tick(6), Some(DAY - 1));
    assert_eq!(bench.tick(4 + DAY), NOTHING, "not old enough");
    assert_eq!(bench.ordered(&order, 4 + DAY), ["done"]);
    assert_eq!(bench.tick(5 + DAY), ["forget"]);
    assert_eq!(bench.next_tick(5 + DAY), None);
    assert!(!bench.machine.is_known(&order.id));
    assert_eq!(bench.machine.records().count(), 0);
}

#[test]
fn events_that_no_order_waits_for_change_nothing() {
    let [queued, hooking, stopping, finished] = ["stop", "hook", "other", "done"].map(hooked);
    let mut bench = Bench::with(Settings {
        max_concurrent_stops: 2,
        ..Settings::default()
    });
    bench.begun(&finished);
    bench.hook_ended(&finished, HookResult::Succeeded, 0);
    bench.stop_ended(&finished, StopResult::Stopped, 0);
    bench.begun(&hooking);
    bench.begun(&stopping);
    bench.begun(&queued);
    bench.hook_ended(&stopping, HookResult::Succeeded, 0);
    let before: Vec<_> = bench.machine.records().collect();

    for order in [&queued, &hooking, &stopping, &finished, &order("unknown")] {
        assert_eq!(bench.alive(order, 1), NOTHING);
        assert_eq!(bench.exited(order, 1), NOTHING);
        assert_eq!(kinds(&bench.inspected(order, away(), at(1))), NOTHING);
        let (order, sequence) = (order.id.clone(), 2);
        let failed = Event::ReportFailed { order, sequence };
        assert_eq!(bench.happens(failed, 1), NOTHING);
    }
    for order in [&queued, &stopping, &finished] {
        assert_eq!(bench.hook_ended(order, HookResult::Succeeded, 1), NOTHING);
    }
    for order in [&queued, &hooking, &finished] {
        assert_eq!(bench.stop_ended(order, StopResult::NotFound, 1), NOTHING);
    }
    assert_eq!(bench.next_tick(1), None, "nothing is paused");
    assert_eq!(bench.machine.records().collect::<Vec<_>>(), before);
}

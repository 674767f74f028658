//! The machine's rules, case by case; crashes are in `crash.rs`.

mod crash;
mod slots;

use model::{
    ids::ContainerId,
    order::{Instance, PreStop, StopOutcome, StopReport},
};

use super::*;
use crate::{HookResult, Stage, StopResult};

const GRACE: Duration = Duration::from_secs(30);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

fn order(id: &str) -> StopOrder {
    StopOrder {
        id: OrderId::new(id),
        attempt: 1,
        instance: Instance {
            namespace: "shop".into(),
            pod: "web-0".into(),
            pod_uid: "uid".into(),
            container: "main".into(),
            container_id: ContainerId::new(format!("container-of-{id}")),
            restart_count: 3,
        },
        grace: GRACE,
        pre_stop: None,
        begin_within: None,
        reason: "ContainerRecreateRequest shop/one".to_owned(),
    }
}

fn hooked(id: &str) -> StopOrder {
    StopOrder {
        pre_stop: Some(PreStop::Exec {
            command: vec!["drain".to_owned()],
        }),
        ..order(id)
    }
}

fn newest(order: &StopOrder, state: InstanceState) -> Observed {
    Observed::Newest {
        container_id: order.instance.container_id.clone(),
        restart_count: order.instance.restart_count,
        state,
    }
}

fn away() -> Observed {
    Observed::Unavailable {
        message: "connection refused".to_owned(),
    }
}

/// A machine with short calls for what tests do most.
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

    fn recovered(records: Vec<Record>, now: Timestamp) -> (Self, Vec<Effect>) {
        let mut bench = Self::new();
        let effects = bench.machine.on_event(Event::Recovered { records }, now);
        (bench, effects)
    }

    fn ordered(&mut self, order: &StopOrder, seconds: i64) -> Vec<Effect> {
        self.tokens += 1;
        let event = Event::Ordered {
            order: order.clone(),
            trace_parent: None,
            reply: ReplyToken(self.tokens),
        };
        self.machine.on_event(event, at(seconds))
    }

    fn inspected(&mut self, order: &StopOrder, observed: Observed, seconds: i64) -> Vec<Effect> {
        let event = Event::Inspected {
            order: order.id.clone(),
            observed,
        };
        self.machine.on_event(event, at(seconds))
    }

    fn alive(&mut self, order: &StopOrder, seconds: i64) -> Vec<Effect> {
        self.inspected(order, newest(order, InstanceState::Alive), seconds)
    }

    fn exited(&mut self, order: &StopOrder, seconds: i64) -> Vec<Effect> {
        self.inspected(order, newest(order, InstanceState::Exited), seconds)
    }

    fn hook_ended(&mut self, order: &StopOrder, result: HookResult, seconds: i64) -> Vec<Effect> {
        let event = Event::HookEnded {
            order: order.id.clone(),
            result,
        };
        self.machine.on_event(event, at(seconds))
    }

    fn stop_ended(&mut self, order: &StopOrder, result: StopResult, seconds: i64) -> Vec<Effect> {
        let event = Event::StopEnded {
            order: order.id.clone(),
            result,
        };
        self.machine.on_event(event, at(seconds))
    }

    fn tick(&mut self, seconds: i64) -> Vec<Effect> {
        self.machine.on_event(Event::Tick, at(seconds))
    }

    /// Brings an order to the point where its hook runs or its stop is sent, at second 0.
    fn begun(&mut self, order: &StopOrder) -> Vec<Effect> {
        self.ordered(order, 0);
        self.alive(order, 0)
    }

    /// Brings an order to its end at second 5; the report is on its way.
    fn finished(&mut self, order: &StopOrder) -> Vec<Effect> {
        self.begun(order);
        self.stop_ended(order, StopResult::Stopped, 5)
    }

    fn record(&self, order: &StopOrder) -> Record {
        self.machine.record(&order.id).unwrap().clone()
    }
}

/// The effects by kind, with what matters of each: short enough to compare whole lists.
fn kinds(effects: &[Effect]) -> Vec<String> {
    effects
        .iter()
        .map(|effect| match effect {
            Effect::Store(record) => match &record.stage {
                Stage::Queued => "store queued".to_owned(),
                Stage::Begun { .. } => "store begun".to_owned(),
                Stage::HookDone { .. } => "store hook done".to_owned(),
                Stage::Finished {
                    is_acknowledged, ..
                } => format!("store finished {is_acknowledged}"),
            },
            Effect::Forget(_) => "forget".to_owned(),
            Effect::Answer { answer, .. } => match answer {
                OrderAnswer::Accepted => "accepted".to_owned(),
                OrderAnswer::Refused(_) => "refused".to_owned(),
                OrderAnswer::Done { .. } => "done".to_owned(),
            },
            Effect::Inspect { .. } => "inspect".to_owned(),
            Effect::RunHook { .. } => "hook".to_owned(),
            Effect::Stop { timeout, .. } => format!("stop {}", timeout.as_secs()),
            Effect::Report(report) => format!("report {}", report.sequence),
        })
        .collect()
}

fn outcome(record: &Record) -> &StopOutcome {
    let Stage::Finished { outcome, .. } = &record.stage else {
        panic!("not finished: {record:?}");
    };
    outcome
}

#[test]
fn journals_before_it_answers_and_answers_before_it_acts() {
    let mut bench = Bench::new();
    let order = order("one");
    assert_eq!(kinds(&bench.ordered(&order, 0)), ["inspect"]);
    let effects = bench.alive(&order, 0);
    assert_eq!(kinds(&effects), ["store begun", "accepted", "stop 30"]);
    let effects = bench.stop_ended(&order, StopResult::Stopped, 3);
    assert_eq!(kinds(&effects), ["store finished false", "report 1"]);
    assert_eq!(
        outcome(&bench.record(&order)),
        &StopOutcome::Stopped { hook_error: None }
    );
}

#[test]
fn the_fence_lets_only_the_newest_and_living_instance_through() {
    let order = order("one");
    let other = Observed::Newest {
        container_id: "another".into(),
        restart_count: 3,
        state: InstanceState::Alive,
    };
    let cases = [
        (Observed::NoPod, Refusal::NoSuchPod),
        (Observed::NoContainer, Refusal::NoSuchContainer),
        (
            other,
            Refusal::OtherInstance {
                container_id: "another".into(),
                restart_count: 3,
            },
        ),
        (
            newest(&order, InstanceState::Exited),
            Refusal::AlreadyExited,
        ),
        (
            away(),
            Refusal::RuntimeUnavailable {
                message: "connection refused".to_owned(),
            },
        ),
    ];
    for (observed, refusal) in cases {
        let mut bench = Bench::new();
        bench.ordered(&order, 0);
        let effects = bench.inspected(&order, observed, 0);
        let answer = OrderAnswer::Refused(refusal);
        let reply = ReplyToken(1);
        assert_eq!(effects, [Effect::Answer { reply, answer }]);
        assert_eq!(bench.machine.unfinished(), 0);
        assert_eq!(
            kinds(&bench.ordered(&order, 1)),
            ["inspect"],
            "a refused order may come again"
        );
    }
}

#[test]
fn a_differing_restart_count_is_no_other_instance() {
    let mut bench = Bench::new();
    let order = order("one");
    bench.ordered(&order, 0);
    let observed = Observed::Newest {
        container_id: order.instance.container_id.clone(),
        restart_count: 99,
        state: InstanceState::Alive,
    };
    let effects = bench.inspected(&order, observed, 0);
    assert_eq!(kinds(&effects), ["store begun", "accepted", "stop 30"]);
}

#[test]
fn refuses_what_can_never_be_done() {
    let mut nameless = order("one");
    nameless.id = OrderId::new("");
    let mut unfenced = order("one");
    unfenced.instance.container_id = "".into();
    let mut endless = order("one");
    endless.grace = Duration::MAX;
    for order in [nameless, unfenced, endless] {
        let effects = Bench::new().ordered(&order, 0);
        assert!(
            matches!(
                effects.as_slice(),
                [Effect::Answer {
                    answer: OrderAnswer::Refused(Refusal::Invalid { .. }),
                    ..
                }]
            ),
            "{effects:?}"
        );
    }
}

#[test]
fn the_same_order_again_is_answered_and_never_done_twice() {
    let mut bench = Bench::new();
    let order = hooked("one");
    assert_eq!(kinds(&bench.ordered(&order, 0)), ["inspect"]);
    assert_eq!(kinds(&bench.ordered(&order, 0)), [""; 0]);
    let effects = bench.alive(&order, 0);
    assert_eq!(
        kinds(&effects),
        ["store begun", "accepted", "accepted", "hook"]
    );
    assert_eq!(kinds(&bench.ordered(&order, 1)), ["accepted"]);
    bench.hook_ended(&order, HookResult::Succeeded, 2);
    assert_eq!(kinds(&bench.ordered(&order, 2)), ["accepted"]);
    bench.stop_ended(&order, StopResult::Stopped, 3);
    assert_eq!(kinds(&bench.ordered(&order, 4)), ["done"]);
}

#[test]
fn the_hook_takes_its_time_from_the_grace_and_leaves_the_floor() {
    for (hook_took, stop) in [
        (0, "stop 30"),
        (10, "stop 20"),
        (29, "stop 2"),
        (30, "stop 2"),
    ] {
        let mut bench = Bench::new();
        let order = hooked("one");
        let effects = bench.begun(&order);
        let Some(Effect::RunHook { deadline, .. }) = effects.last() else {
            panic!("{effects:?}");
        };
        assert_eq!(*deadline, at(30));
        let effects = bench.hook_ended(&order, HookResult::Succeeded, hook_took);
        assert_eq!(kinds(&effects), ["store hook done", stop]);
    }
}

#[test]
fn without_grace_there_is_no_hook_and_the_floor_remains() {
    let mut bench = Bench::new();
    let order = StopOrder {
        grace: Duration::ZERO,
        ..hooked("one")
    };
    assert_eq!(
        kinds(&bench.begun(&order)),
        ["store begun", "accepted", "stop 2"]
    );
}

#[test]
fn a_failed_hook_is_remembered_and_the_stop_goes_on() {
    let failed = HookResult::Failed {
        message: "exit code 7".to_owned(),
    };
    for (result, error) in [
        (HookResult::Succeeded, None),
        (failed, Some("exit code 7")),
        (
            HookResult::CutOff,
            Some("the hook was cut off at the end of the grace"),
        ),
    ] {
        let mut bench = Bench::new();
        let order = hooked("one");
        bench.begun(&order);
        bench.hook_ended(&order, result, 1);
        bench.stop_ended(&order, StopResult::Stopped, 2);
        let hook_error = error.map(str::to_owned);
        assert_eq!(
            outcome(&bench.record(&order)),
            &StopOutcome::Stopped { hook_error }
        );
    }
}

#[test]
fn a_failed_stop_is_judged_by_what_the_runtime_then_shows() {
    let order = order("one");
    let alive = newest(&order, InstanceState::Alive);
    let exited = newest(&order, InstanceState::Exited);
    let stopped = StopOutcome::Stopped { hook_error: None };
    let failed = StopOutcome::Failed {
        message: "shim is gone".to_owned(),
    };
    for (observed, expected) in [
        (exited, &stopped),
        (Observed::NoContainer, &stopped),
        (Observed::NoPod, &stopped),
        (alive, &failed),
    ] {
        let mut bench = Bench::new();
        bench.begun(&order);
        let result = StopResult::Failed {
            message: "shim is gone".to_owned(),
        };
        assert_eq!(kinds(&bench.stop_ended(&order, result, 1)), ["inspect"]);
        let effects = bench.inspected(&order, observed, 1);
        assert_eq!(kinds(&effects), ["store finished false", "report 1"]);
        assert_eq!(outcome(&bench.record(&order)), expected);
    }
}

#[test]
fn a_stop_of_what_is_not_there_ends_as_gone() {
    let mut bench = Bench::new();
    let order = order("one");
    bench.begun(&order);
    bench.stop_ended(&order, StopResult::NotFound, 1);
    assert_eq!(outcome(&bench.record(&order)), &StopOutcome::Gone);
}

#[test]
fn a_runtime_that_went_away_is_asked_until_it_answers() {
    let mut bench = Bench::new();
    let order = order("one");
    bench.begun(&order);
    let gone = StopResult::Unavailable {
        message: "broken pipe".to_owned(),
    };
    assert_eq!(kinds(&bench.stop_ended(&order, gone, 10)), [""; 0]);
    let mut now = 10;
    for wait in [1, 2, 4, 8, 8] {
        assert_eq!(bench.machine.next_deadline(), Some(at(now + wait)));
        now += wait;
        assert_eq!(kinds(&bench.tick(now - 1)), [""; 0]);
        assert_eq!(kinds(&bench.tick(now)), ["inspect"]);
        assert_eq!(kinds(&bench.inspected(&order, away(), now)), [""; 0]);
    }
    bench.tick(now + 8);
    assert_eq!(kinds(&bench.alive(&order, now + 8)), ["stop 2"]);
    bench.stop_ended(&order, StopResult::Stopped, now + 9);
    assert_eq!(
        outcome(&bench.record(&order)),
        &StopOutcome::Stopped { hook_error: None }
    );
}

#[test]
fn repeats_a_report_with_growing_delays_until_it_is_acknowledged() {
    let mut bench = Bench::new();
    let order = order("one");
    bench.finished(&order);
    let mut now = 5;
    for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
        let failed = Event::ReportFailed {
            order: order.id.clone(),
            sequence: 1,
        };
        assert_eq!(kinds(&bench.machine.on_event(failed, at(now))), [""; 0]);
        now += wait;
        assert_eq!(bench.machine.next_deadline(), Some(at(now)));
        assert_eq!(kinds(&bench.tick(now)), ["report 1"]);
    }
    let acknowledged = Event::ReportAcknowledged {
        order: order.id.clone(),
        sequence: 1,
    };
    let effects = bench.machine.on_event(acknowledged.clone(), at(now));
    assert_eq!(kinds(&effects), ["store finished true"]);
    assert_eq!(
        kinds(&bench.machine.on_event(acknowledged, at(now))),
        [""; 0],
        "a second acknowledgement changes nothing"
    );
}

#[test]
fn a_clock_that_is_set_back_puts_nothing_off_and_forgets_nothing() {
    let (hour, day) = (3600, 24 * 3600);
    let mut bench = Bench::new();
    let order = order("one");
    bench.begun(&order);
    let gone = StopResult::Unavailable {
        message: "broken pipe".to_owned(),
    };
    bench.stop_ended(&order, gone, hour);
    assert_eq!(kinds(&bench.tick(10)), ["inspect"]);
    bench.alive(&order, 10);
    bench.stop_ended(&order, StopResult::Stopped, hour);
    let failed = Event::ReportFailed {
        order: order.id.clone(),
        sequence: 1,
    };
    bench.machine.on_event(failed, at(hour));
    assert_eq!(kinds(&bench.tick(20)), ["report 1"]);
    let acknowledged = Event::ReportAcknowledged {
        order: order.id.clone(),
        sequence: 1,
    };
    bench.machine.on_event(acknowledged, at(20));
    assert_eq!(kinds(&bench.tick(30)), [""; 0]);
    assert_eq!(kinds(&bench.tick(hour + day)), ["forget"]);
}

#[test]
fn the_report_says_the_newest_attempt() {
    let mut bench = Bench::new();
    let order = order("one");
    bench.begun(&order);
    let again = StopOrder {
        attempt: 4,
        ..order.clone()
    };
    bench.ordered(&again, 1);
    bench.ordered(&order, 1);
    let effects = bench.stop_ended(&order, StopResult::Stopped, 2);
    let expected = StopReport {
        order: order.id.clone(),
        attempt: 4,
        sequence: 1,
        instance: order.instance.clone(),
        outcome: StopOutcome::Stopped { hook_error: None },
    };
    assert_eq!(effects.last(), Some(&Effect::Report(expected)));
}

#[test]
fn forgets_a_finished_order_only_when_acknowledged_and_old() {
    let mut bench = Bench::new();
    let order = order("one");
    bench.finished(&order);
    let day = 24 * 3600;
    assert_eq!(kinds(&bench.tick(5 + 2 * day)), [""; 0], "not acknowledged");
    let acknowledged = Event::ReportAcknowledged {
        order: order.id.clone(),
        sequence: 1,
    };
    bench.machine.on_event(acknowledged, at(6));
    assert_eq!(bench.machine.next_deadline(), Some(at(5 + day)));
    assert_eq!(kinds(&bench.tick(4 + day)), [""; 0], "not old enough");
    assert_eq!(kinds(&bench.ordered(&order, 4 + day)), ["done"]);
    assert_eq!(kinds(&bench.tick(5 + day)), ["forget"]);
    assert_eq!(bench.machine.next_deadline(), None);
    assert_eq!(bench.machine.records().count(), 0);
}

#[test]
fn events_that_nobody_waits_for_change_nothing() {
    let mut bench = Bench::new();
    let order = order("one");
    bench.finished(&order);
    let before = bench.record(&order);
    bench.hook_ended(&order, HookResult::Succeeded, 6);
    bench.stop_ended(&order, StopResult::NotFound, 6);
    assert_eq!(kinds(&bench.alive(&order, 6)), [""; 0]);
    let other = self::order("unknown");
    assert_eq!(kinds(&bench.alive(&other, 6)), [""; 0]);
    assert_eq!(
        kinds(&bench.stop_ended(&other, StopResult::Stopped, 6)),
        [""; 0]
    );
    assert_eq!(bench.record(&order), before);
}

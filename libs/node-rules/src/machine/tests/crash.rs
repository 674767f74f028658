//! The process dies at any point, and the order is still done exactly once.

use proptest::prelude::*;

use super::*;

/// A node with one container: what is on disk and in the runtime outlives a crash.
struct Node {
    bench: Bench,
    order: StopOrder,
    now: i64,
    /// JSON, as the journal holds it.
    disk: Option<String>,
    container: InstanceState,
    is_runtime_away: bool,
    hooks_ended: u32,
    stops: u32,
    answers: Vec<OrderAnswer>,
    reports: Vec<StopReport>,
    work: VecDeque<Effect>,
}

impl Node {
    fn new(order: StopOrder) -> Self {
        Self {
            bench: Bench::new(),
            order,
            now: 0,
            disk: None,
            container: InstanceState::Alive,
            is_runtime_away: false,
            hooks_ended: 0,
            stops: 0,
            answers: Vec::new(),
            reports: Vec::new(),
            work: VecDeque::new(),
        }
    }

    fn send_order(&mut self) {
        let effects = self.bench.ordered(&self.order.clone(), self.now);
        self.work.extend(effects);
    }

    fn crash(&mut self) {
        let records = self
            .disk
            .iter()
            .map(|json| serde_json::from_str(json).unwrap())
            .collect();
        let (bench, effects) = Bench::recovered(records, at(self.now));
        self.bench = bench;
        self.work = effects.into();
    }

    fn event(&mut self, event: Event) {
        let effects = self.bench.machine.on_event(event, at(self.now));
        self.work.extend(effects);
    }

    /// Does one effect; a crash may come before its event is told. `false` when there was nothing to do.
    fn step(&mut self, is_crashing_after: bool) -> bool {
        let Some(effect) = self.work.pop_front() else {
            return false;
        };
        self.now += 1;
        let id = self.order.id.clone();
        let event = match effect {
            Effect::Store(record) => {
                self.disk = Some(serde_json::to_string(&record).unwrap());
                None
            }
            Effect::Forget(_) => {
                self.disk = None;
                None
            }
            Effect::Answer { answer, .. } => {
                if matches!(answer, OrderAnswer::Accepted | OrderAnswer::Done { .. }) {
                    assert!(self.disk.is_some(), "answered before it was journaled");
                }
                self.answers.push(answer);
                None
            }
            Effect::Inspect { order, .. } => Some(Event::Inspected {
                order,
                observed: self.observe(),
            }),
            Effect::RunHook { .. } => {
                let disk = self.disk.as_deref().unwrap_or_default();
                assert!(!disk.contains("HookDone"), "a journaled hook ran again");
                self.hooks_ended += 1;
                Some(Event::HookEnded {
                    order: id,
                    result: HookResult::Succeeded,
                })
            }
            Effect::Stop { .. } => Some(self.stop()),
            Effect::Report(report) => {
                let sequence = report.sequence;
                self.reports.push(report);
                Some(Event::ReportAcknowledged {
                    order: id,
                    sequence,
                })
            }
        };
        if is_crashing_after {
            self.crash();
        } else if let Some(event) = event {
            self.event(event);
        }
        true
    }

    fn observe(&self) -> Observed {
        if self.is_runtime_away {
            return away();
        }
        newest(&self.order, self.container)
    }

    fn stop(&mut self) -> Event {
        let disk = self.disk.as_deref().unwrap_or_default();
        assert!(disk.contains("Begun") || disk.contains("HookDone"));
        let result = if self.is_runtime_away {
            StopResult::Unavailable {
                message: "away".to_owned(),
            }
        } else {
            self.stops += u32::from(self.container == InstanceState::Alive);
            self.container = InstanceState::Exited;
            StopResult::Stopped
        };
        Event::StopEnded {
            order: self.order.id.clone(),
            result,
        }
    }

    /// Runs until nothing is left but the retention.
    fn run_to_end(&mut self) {
        for _ in 0..200 {
            if self.step(false) {
                continue;
            }
            if self.bench.machine.unfinished() == 0 {
                break;
            }
            self.now += 10;
            self.event(Event::Tick);
        }
    }

    fn check_done(&self, what: &str) {
        assert_eq!(self.container, InstanceState::Exited, "{what}");
        assert_eq!(self.stops, 1, "{what}");
        let last = self.reports.last().unwrap_or_else(|| panic!("{what}"));
        assert!(
            matches!(last.outcome, StopOutcome::Stopped { .. }),
            "{what}: {last:?}"
        );
        let disk = self.disk.as_deref().unwrap_or_default();
        assert!(disk.contains(r#""is_acknowledged":true"#), "{what}: {disk}");
    }
}

#[test]
fn a_crash_after_any_effect_loses_nothing_and_doubles_nothing() {
    for order in [order("one"), hooked("one")] {
        for crash_after in 0..12 {
            let mut node = Node::new(order.clone());
            node.send_order();
            for step in 0..=crash_after {
                node.step(step == crash_after);
            }
            // The scheduler repeats an order until it has heard of its end.
            node.send_order();
            node.run_to_end();
            node.check_done(&format!("crash after effect {crash_after}"));
            let limit = if order.pre_stop.is_some() {
                1..=2
            } else {
                0..=0
            };
            assert!(limit.contains(&node.hooks_ended), "{}", node.hooks_ended);
        }
    }
}

#[test]
fn a_hook_cut_off_by_a_crash_runs_again_within_the_grace_left() {
    let order = hooked("one");
    let mut bench = Bench::new();
    bench.begun(&order);
    let records = vec![bench.record(&order)];
    for (back_at, expected) in [
        (12, vec!["hook"]),
        (29, vec!["hook"]),
        (30, vec!["store hook done", "stop 2"]),
        (500, vec!["store hook done", "stop 2"]),
    ] {
        let (mut bench, effects) = Bench::recovered(records.clone(), at(back_at));
        assert_eq!(kinds(&effects), ["inspect"]);
        let effects = bench.alive(&order, back_at);
        assert_eq!(kinds(&effects), expected, "back at {back_at}");
        if let [Effect::RunHook { deadline, .. }] = effects.as_slice() {
            assert_eq!(*deadline, at(30));
        }
    }
}

#[test]
fn a_clock_set_back_does_not_lengthen_the_grace() {
    let order = hooked("one");
    let mut bench = Bench::new();
    bench.begun(&order);
    let (mut bench, _) = Bench::recovered(vec![bench.record(&order)], at(-5000));
    let effects = bench.alive(&order, -5000);
    let [Effect::RunHook { deadline, .. }] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    assert_eq!(*deadline, at(-4970));
    let effects = bench.hook_ended(&order, HookResult::Succeeded, -4990);
    assert_eq!(kinds(&effects), ["store hook done", "stop 30"]);
}

#[test]
fn what_was_told_to_stop_before_the_crash_counts_as_stopped_by_us() {
    let (plain, hook) = (order("plain"), hooked("hook"));
    let mut bench = Bench::new();
    bench.begun(&plain);
    bench.begun(&hook);
    let mut after_hook = bench.record(&hook);
    after_hook.stage = Stage::HookDone {
        grace_ends: at(30),
        hook_error: Some("exit code 1".to_owned()),
    };
    let stopped = |hook_error: Option<&str>| StopOutcome::Stopped {
        hook_error: hook_error.map(str::to_owned),
    };
    for (record, expected) in [
        (bench.record(&plain), stopped(None)),
        (bench.record(&hook), StopOutcome::Gone),
        (after_hook, stopped(Some("exit code 1"))),
    ] {
        let (mut bench, _) = Bench::recovered(vec![record.clone()], at(3));
        let effects = bench.exited(&record.order, 3);
        assert_eq!(kinds(&effects), ["store finished false", "report 1"]);
        assert_eq!(outcome(&bench.record(&record.order)), &expected);
    }
}

#[test]
fn after_a_restart_waiting_orders_go_on_in_their_old_order() {
    let mut early = Record {
        order: order("z"),
        trace_parent: None,
        accepted_at: at(1),
        stage: Stage::Queued,
    };
    let late = Record {
        order: order("a"),
        accepted_at: at(2),
        ..early.clone()
    };
    early.trace_parent = Some("00-trace".to_owned());
    let mut machine = Machine::new(Settings {
        max_concurrent_stops: 1,
        ..Settings::default()
    });
    let records = vec![late, early.clone()];
    let effects = machine.on_event(Event::Recovered { records }, at(3));
    assert!(
        matches!(effects.as_slice(), [Effect::Inspect { order, .. }] if *order == early.order.id),
        "{effects:?}"
    );
    assert_eq!(machine.record(&early.order.id), Some(&early));
}

#[test]
fn a_report_that_was_not_acknowledged_is_sent_after_a_restart() {
    let mut bench = Bench::new();
    let order = order("one");
    bench.finished(&order);
    let (mut bench, effects) = Bench::recovered(vec![bench.record(&order)], at(9));
    assert_eq!(kinds(&effects), ["report 1"]);
    assert_eq!(kinds(&bench.ordered(&order, 10)), ["done"]);
}

proptest! {
    /// Any mixture of work, crashes, repeated orders and a runtime that comes and goes.
    #[test]
    fn one_stop_whatever_happens(
        has_hook: bool,
        happenings in proptest::collection::vec(0_u8..6, 0..60),
    ) {
        let mut node = Node::new(if has_hook { hooked("one") } else { order("one") });
        node.send_order();
        for happening in happenings {
            match happening {
                0 | 1 => drop(node.step(false)),
                2 => drop(node.step(true)),
                3 => node.send_order(),
                4 => node.is_runtime_away = !node.is_runtime_away,
                _ => {
                    node.now += 10;
                    node.event(Event::Tick);
                }
            }
        }
        node.is_runtime_away = false;
        node.run_to_end();
        node.send_order();
        node.run_to_end();
        node.check_done("at the end");
    }
}

//! The process dies at any point, and the order is still done exactly once.

use proptest::prelude::*;

use super::*;

/// One step of carrying out effects; a crash may come after each.
enum Work {
    Store(Record),
    Forget,
    Answer(Answer),
    Act(Action),
}

/// Effects in the order in which they leave.
fn work_of(effects: Effects) -> impl Iterator<Item = Work> {
    let stored = effects.store.into_iter().map(Work::Store);
    let forgotten = effects.forget.into_iter().map(|_| Work::Forget);
    let answers = effects.answers.into_iter();
    let answers = answers.map(|(_, answer)| Work::Answer(answer));
    let actions = effects.actions.into_iter().map(Work::Act);
    stored.chain(forgotten).chain(answers).chain(actions)
}

/// A node with one container. Disk and runtime outlive a crash.
struct Node {
    bench: Bench,
    order: Order,
    now: u64,
    /// JSON, as the journal holds it.
    disk: Option<String>,
    container: InstanceState,
    is_runtime_away: bool,
    hooks_ended: u32,
    stops: u32,
    reports: Vec<Report>,
    work: VecDeque<Work>,
}

impl Node {
    fn new(order: Order) -> Self {
        Self {
            bench: Bench::new(),
            order,
            now: 0,
            disk: None,
            container: InstanceState::Alive,
            is_runtime_away: false,
            hooks_ended: 0,
            stops: 0,
            reports: Vec::new(),
            work: VecDeque::new(),
        }
    }

    fn send_order(&mut self) {
        let effects = self.bench.send(&self.order, 1, at(self.now));
        self.work.extend(work_of(effects));
    }

    fn crash(&mut self) {
        let records = self
            .disk
            .iter()
            .map(|json| serde_json::from_str(json).unwrap())
            .collect();
        let (bench, effects) = Bench::recovered(records, at(self.now));
        self.bench = bench;
        self.work = work_of(effects).collect();
    }

    fn event(&mut self, event: Event) {
        let effects = self.bench.machine.on_event(event, at(self.now));
        self.work.extend(work_of(effects));
    }

    /// Does one step; a crash may come before its event. `false` if there was nothing to do.
    fn step(&mut self, is_crashing_after: bool) -> bool {
        let Some(work) = self.work.pop_front() else {
            return false;
        };
        self.now += 1;
        let event = match work {
            Work::Store(record) => {
                self.disk = Some(serde_json::to_string(&record).unwrap());
                None
            }
            Work::Forget => {
                self.disk = None;
                None
            }
            Work::Answer(answer) => {
                let needs_record = !matches!(answer, Answer::Refused(_));
                assert!(!needs_record || self.disk.is_some(), "answered too early");
                None
            }
            Work::Act(action) => Some(self.act(action)),
        };
        if is_crashing_after {
            self.crash();
        } else if let Some(event) = event {
            self.event(event);
        }
        true
    }

    fn act(&mut self, action: Action) -> Event {
        let disk = self.disk.clone().unwrap_or_default();
        match action {
            Action::Inspect { order, .. } => {
                let observed = if self.is_runtime_away {
                    away()
                } else {
                    newest("one", self.container)
                };
                Event::Inspected { order, observed }
            }
            Action::RunHook { order, .. } => {
                assert!(!disk.contains("HookDone"), "a journaled hook ran again");
                self.hooks_ended += 1;
                let result = HookResult::Succeeded;
                Event::HookEnded { order, result }
            }
            Action::Stop { order, .. } => {
                assert!(disk.contains("Begun") || disk.contains("HookDone"));
                let result = if self.is_runtime_away {
                    broken_pipe()
                } else {
                    self.stops += u32::from(self.container == InstanceState::Alive);
                    self.container = InstanceState::Exited;
                    StopResult::Stopped
                };
                Event::StopEnded { order, result }
            }
            Action::Report(report) => {
                let (order, sequence) = (report.order.clone(), report.sequence);
                self.reports.push(report);
                Event::ReportAcknowledged { order, sequence }
            }
            Action::ListInstances { .. } | Action::RemoveInstances { .. } => {
                panic!("not ordered: {action:?}")
            }
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
            matches!(last.outcome, Outcome::Stopped { .. }),
            "{what}: {last:?}"
        );
        let disk = self.disk.as_deref().unwrap_or_default();
        assert!(disk.contains(r#""is_acknowledged":true"#), "{what}: {disk}");
    }
}

#[test]
fn a_crash_after_any_effect_loses_nothing_and_doubles_nothing() {
    for (order, hooks) in [(order("one"), 0..=0), (hooked("one"), 1..=2)] {
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
            assert!(hooks.contains(&node.hooks_ended), "{}", node.hooks_ended);
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
        (12, &["hook 18"][..]),
        (29, &["hook 1"]),
        (30, &["store hook done", "stop 2"]),
        (500, &["store hook done", "stop 2"]),
    ] {
        let (mut bench, effects) = Bench::recovered(records.clone(), at(back_at));
        assert_eq!(kinds(&effects), ["inspect"]);
        assert_eq!(bench.alive(&order, back_at), expected, "back at {back_at}");
    }
}

#[test]
fn a_clock_set_back_during_a_crash_does_not_lengthen_the_grace() {
    let order = hooked("one");
    let mut bench = Bench::new();
    bench.ordered(&order, 5000);
    bench.alive(&order, 5000);
    let (mut bench, _) = Bench::recovered(vec![bench.record(&order)], at(0));
    assert_eq!(bench.alive(&order, 0), ["hook 30"]);
    let effects = bench.hook_ended(&order, HookResult::Succeeded, 10);
    assert_eq!(effects, ["store hook done", "stop 20"]);
}

#[test]
fn a_stop_sent_before_the_crash_counts_as_ours() {
    let (plain, hook) = (order("plain"), hooked("hook"));
    let mut bench = Bench::new();
    bench.begun(&plain);
    bench.begun(&hook);
    let mut after_hook = bench.record(&hook);
    after_hook.stage = Stage::HookDone {
        grace_ends: at(30).wall,
        hook_error: Some("exit code 1".to_owned()),
    };
    for (order, record, expected) in [
        (&plain, bench.record(&plain), stopped(None)),
        (&hook, bench.record(&hook), Outcome::Gone),
        (&hook, after_hook, stopped(Some("exit code 1"))),
    ] {
        let (mut bench, _) = Bench::recovered(vec![record], at(3));
        let effects = bench.exited(order, 3);
        assert_eq!(effects, ["store finished false", "report 1"]);
        assert_eq!(bench.outcome(order), expected);
    }
}

#[test]
fn the_time_to_begin_goes_on_during_a_crash() {
    let order = with(order("one"), |stop| {
        stop.begin_within = Some(Duration::from_secs(5));
    });
    for (back_at, expected) in [
        (4, &["store begun", "stop 30"]),
        (5, &["store finished false", "report 1"]),
    ] {
        let mut bench = Bench::new();
        bench.happens(Event::DrainBegun, 0);
        bench.begun(&order);
        let (mut bench, _) = Bench::recovered(vec![bench.record(&order)], at(back_at));
        assert_eq!(bench.alive(&order, back_at), expected);
    }
}

#[test]
fn every_stage_is_taken_up_as_it_was_stored() {
    let order = hooked("one");
    let mut bench = Bench::new();
    bench.begun(&order);
    let mut records = vec![bench.record(&order)];
    bench.hook_ended(&order, HookResult::CutOff, 1);
    records.push(bench.record(&order));
    bench.stop_ended(&order, StopResult::Stopped, 2);
    records.push(bench.record(&order));
    bench.acknowledged(&order, 3);
    records.push(bench.record(&order));
    for record in records {
        let (bench, _) = Bench::recovered(vec![record.clone()], at(9));
        assert_eq!(bench.record(&order), record);
    }
}

#[test]
fn after_a_restart_waiting_orders_go_on_in_their_old_order() {
    let mut bench = Bench::new();
    bench.happens(Event::DrainBegun, 0);
    let (early, late) = (order("z"), order("a"));
    for (order, seconds) in [(&early, 1), (&late, 2)] {
        bench.ordered(order, seconds);
        bench.alive(order, seconds);
    }
    let mut records: Vec<_> = bench.machine.records().collect();
    records[1].traceparent = Some("00-trace".to_owned());
    let recovered = records[1].clone();
    let mut machine = Machine::new(Settings {
        max_concurrent_stops: 1,
        ..Settings::default()
    });
    let effects = machine.on_event(Event::Recovered { records }, at(3));
    let inspect = Action::Inspect {
        order: early.id.clone(),
        instance: early.instance,
    };
    assert_eq!(effects.actions, [inspect]);
    assert_eq!(machine.record(&early.id), Some(recovered));
}

#[test]
fn a_report_that_was_not_acknowledged_is_sent_after_a_restart() {
    let mut bench = Bench::new();
    let order = order("one");
    bench.finished(&order);
    let (mut bench, effects) = Bench::recovered(vec![bench.record(&order)], at(9));
    assert_eq!(kinds(&effects), ["report 1"]);
    assert_eq!(bench.ordered(&order, 10), ["done"]);
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

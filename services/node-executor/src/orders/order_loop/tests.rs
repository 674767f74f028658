//! The loop with a real journal and IO that the tests control.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use model::order::{Order, Outcome, PreStop, Refusal, Sending, Verb};
use node_rules::{HookResult, InstanceState, ListedInstance, Observed, StopResult};
use prometheus_client::{encoding::text::encode, registry::Registry};
use service_kit::{Readiness, StateCell};
use tokio::sync::{Semaphore, oneshot, watch};

use super::*;
use crate::metrics::Metrics;

/// The IO calls of the loop, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Hook,
    /// The journaled stage at the time of the stop.
    Stop(String),
    Answer(Answer),
    Remove,
    Report(Outcome, Option<String>),
}

/// IO of a node with one container.
#[derive(Clone)]
struct Fake {
    journal: Journal,
    seen: mpsc::UnboundedSender<Seen>,
    is_exited: Arc<AtomicBool>,
    /// A stop or a removal ends when there is a permit.
    may_end: Arc<Semaphore>,
    /// The number of reports still to be lost.
    lost_reports: Arc<AtomicU32>,
}

impl Fake {
    async fn journaled(&self) -> String {
        let records = self.journal.load().await.unwrap();
        match records.first().map(|record| record.stage.clone()) {
            None => "nothing".to_owned(),
            Some(Stage::Queued) => "queued".to_owned(),
            Some(Stage::Begun { .. }) => "begun".to_owned(),
            Some(Stage::HookDone { .. }) => "hook done".to_owned(),
            Some(Stage::Finished { .. }) => "finished".to_owned(),
        }
    }

    fn state(&self) -> InstanceState {
        if self.is_exited.load(Ordering::SeqCst) {
            InstanceState::Exited
        } else {
            InstanceState::Alive
        }
    }

    async fn may_end(&self) {
        self.may_end.acquire().await.unwrap().forget();
    }
}

impl NodeIo for Fake {
    type Reply = oneshot::Sender<Answer>;

    async fn act(&self, action: Action, traceparent: Option<String>) -> Event {
        match action {
            Action::Inspect { order, instance } => {
                let observed = Observed::Newest(ListedInstance {
                    container_id: instance.container_id,
                    restart_count: 0,
                    created_at: 0,
                    state: self.state(),
                });
                Event::Inspected { order, observed }
            }
            Action::RunHook { order, .. } => {
                self.seen.send(Seen::Hook).unwrap();
                let result = HookResult::Succeeded;
                Event::HookEnded { order, result }
            }
            Action::Stop { order, .. } => {
                let journaled = self.journaled().await;
                self.seen.send(Seen::Stop(journaled)).unwrap();
                self.may_end().await;
                self.is_exited.store(true, Ordering::SeqCst);
                let result = StopResult::Stopped;
                Event::StopEnded { order, result }
            }
            Action::ListInstances { order, instance } => {
                let listed = Ok(vec![ListedInstance {
                    container_id: instance.container_id,
                    restart_count: 0,
                    created_at: 0,
                    state: self.state(),
                }]);
                Event::InstancesListed { order, listed }
            }
            Action::RemoveInstances { order, .. } => {
                self.seen.send(Seen::Remove).unwrap();
                self.may_end().await;
                let result = Ok(1);
                Event::RemovalEnded { order, result }
            }
            Action::Report(report) => {
                let (order, sequence) = (report.order, report.sequence);
                let seen = Seen::Report(report.outcome, traceparent);
                self.seen.send(seen).unwrap();
                let lost = &self.lost_reports;
                let one_less = |left: u32| left.checked_sub(1);
                let lost = lost.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
                match lost {
                    Ok(_) => Event::ReportFailed { order, sequence },
                    Err(_) => Event::ReportAcknowledged { order, sequence },
                }
            }
        }
    }

    async fn answer(&self, reply: Self::Reply, answer: Answer) {
        if answer == Answer::Accepted {
            assert_ne!(
                self.journaled().await,
                "nothing",
                "answered before journaled"
            );
        }
        self.seen.send(Seen::Answer(answer.clone())).unwrap();
        drop(reply.send(answer));
    }
}

/// A running loop; dropping it is a crash.
struct Process {
    fake: Fake,
    registry: Registry,
    seen: mpsc::UnboundedReceiver<Seen>,
    orders: mpsc::Sender<Incoming<oneshot::Sender<Answer>>>,
    shutdown: Shutdown,
    task: JoinSet<Result<(), OrderLoopError>>,
}

impl Process {
    async fn start(directory: &Path, is_exited: bool) -> Self {
        let journal = Journal::open(directory).await.unwrap();
        let (seen_tx, seen) = mpsc::unbounded_channel();
        let fake = Fake {
            journal: journal.clone(),
            seen: seen_tx,
            is_exited: Arc::new(AtomicBool::new(is_exited)),
            may_end: Arc::new(Semaphore::new(0)),
            lost_reports: Arc::default(),
        };
        let mut registry = Registry::default();
        let report = Report {
            node: "node-a".into(),
            metrics: Metrics::register(&mut registry),
            state: StateCell::default(),
            readiness: Readiness::default(),
            orders_held: watch::channel(0).0,
            runtime: watch::channel(None).1,
        };
        let order_loop = OrderLoop::new(Settings::default(), journal, fake.clone(), report);
        let (orders, incoming) = mpsc::channel(8);
        let shutdown = Shutdown::default();
        let mut task = JoinSet::new();
        task.spawn(order_loop.run(incoming, shutdown.clone()));
        Self {
            fake,
            registry,
            seen,
            orders,
            shutdown,
            task,
        }
    }

    async fn send(&self, order: Order) {
        let incoming = Incoming {
            sending: Sending { order, attempt: 1 },
            traceparent: Some("00-parent".to_owned()),
            reply: oneshot::channel().0,
        };
        self.orders.send(incoming).await.ok().unwrap();
    }

    async fn next(&mut self) -> Seen {
        self.seen.recv().await.unwrap()
    }

    /// Ends without a shutdown, and waits until the journal's file is closed.
    async fn crash(mut self) {
        self.task.shutdown().await;
    }

    async fn ends(&mut self) {
        self.task.join_next().await.unwrap().unwrap().unwrap();
    }

    fn has_metric(&self, line: &str) -> bool {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        text.lines().any(|metric| metric == line)
    }
}

fn order() -> Order {
    testkit::stop("main", "abc")
}

fn hooked() -> Order {
    let mut order = order();
    if let Verb::Stop(stop) = &mut order.verb {
        let command = vec!["drain".to_owned()];
        stop.pre_stop = Some(PreStop::Exec { command });
    }
    order
}

fn removal() -> Order {
    testkit::removal("main", "abc")
}

fn stopped() -> Outcome {
    Outcome::Stopped { hook_error: None }
}

fn reported() -> Seen {
    Seen::Report(stopped(), Some("00-parent".to_owned()))
}

fn removed() -> Seen {
    Seen::Answer(Answer::Done {
        container_id: None,
        outcome: Outcome::Removed { count: 1 },
    })
}

fn refused_as_unfinished() -> Seen {
    let order = order().id;
    Seen::Answer(Answer::Refused(Refusal::StopUnfinished { order }))
}

#[tokio::test]
async fn journals_then_answers_runs_the_hook_stops_and_reports() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    process.fake.may_end.add_permits(1);
    process.send(hooked()).await;
    // The answer and the hook go out at the same time.
    let first = [process.next().await, process.next().await];
    assert!(first.contains(&Seen::Answer(Answer::Accepted)), "{first:?}");
    assert!(first.contains(&Seen::Hook), "{first:?}");
    assert_eq!(process.next().await, Seen::Stop("hook done".to_owned()));
    assert_eq!(process.next().await, reported());
    process.send(hooked()).await;
    let done = Seen::Answer(Answer::Done {
        container_id: Some(order().instance.container_id),
        outcome: stopped(),
    });
    assert_eq!(process.next().await, done);
}

#[tokio::test]
async fn a_stop_that_crashed_midway_is_reported_after_the_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    process.send(order()).await;
    let first = [process.next().await, process.next().await];
    assert!(first.contains(&Seen::Stop("begun".to_owned())), "{first:?}");
    process.crash().await;
    // The runtime finishes the stop; the journal has only the order.
    let mut process = Process::start(directory.path(), true).await;
    assert_eq!(process.next().await, reported());
}

#[tokio::test]
async fn a_crash_before_the_stop_took_effect_stops_again_without_the_hook() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    process.send(hooked()).await;
    while process.next().await != Seen::Stop("hook done".to_owned()) {}
    process.crash().await;
    let mut process = Process::start(directory.path(), false).await;
    process.fake.may_end.add_permits(1);
    assert_eq!(process.next().await, Seen::Stop("hook done".to_owned()));
    assert_eq!(process.next().await, reported());
}

#[tokio::test]
async fn repeats_a_report_until_it_is_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    process.fake.may_end.add_permits(1);
    process.fake.lost_reports.store(1, Ordering::SeqCst);
    process.send(order()).await;
    while process.next().await != reported() {}
    assert_eq!(process.next().await, reported());
}

#[tokio::test]
async fn an_unfinished_stop_forbids_a_removal_from_its_answer_to_its_stored_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    process.send(order()).await;
    let accepted = Seen::Answer(Answer::Accepted);
    while process.next().await != accepted {}
    process.fake.is_exited.store(true, Ordering::SeqCst);
    process.send(removal()).await;
    while process.next().await != refused_as_unfinished() {}
    process.fake.may_end.add_permits(1);
    while process.next().await != reported() {}
    process.send(removal()).await;
    assert_eq!(process.next().await, Seen::Remove);
    process.fake.may_end.add_permits(1);
    assert_eq!(process.next().await, removed());
    for (result, count) in [("refused", 1), ("dropped", 1)] {
        let line = format!("node_executor_drops_total{{result=\"{result}\"}} {count}");
        assert!(process.has_metric(&line), "{line}");
    }
    assert!(process.has_metric("node_executor_answers_total{kind=\"accepted\"} 1"));
    assert_eq!(process.fake.journal.load().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_stop_in_the_journal_forbids_a_removal_after_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    process.send(hooked()).await;
    while process.next().await != Seen::Stop("hook done".to_owned()) {}
    process.crash().await;
    let mut process = Process::start(directory.path(), false).await;
    process.send(removal()).await;
    while process.next().await != refused_as_unfinished() {}
}

#[tokio::test]
async fn a_shutdown_lets_a_running_stop_end_and_begins_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    process.send(order()).await;
    while process.next().await != Seen::Stop("begun".to_owned()) {}
    process.shutdown.begin();
    process.fake.may_end.add_permits(1);
    process.ends().await;
    assert_eq!(process.fake.journaled().await, "finished");
}

#[tokio::test]
async fn an_idle_process_ends_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    process.shutdown.begin();
    process.ends().await;
}

#[tokio::test]
async fn a_shutdown_lets_a_running_removal_end_and_be_answered() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), true).await;
    process.send(removal()).await;
    assert_eq!(process.next().await, Seen::Remove);
    process.shutdown.begin();
    process.fake.may_end.add_permits(1);
    process.ends().await;
    assert_eq!(process.next().await, removed());
}

//! The loop with a real journal and an outside that tests hold in their hands.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use model::{
    ids::ContainerId,
    order::{Instance, PreStop, StopOrder, StopOutcome},
};
use node_rules::{HookResult, InstanceState, Observed, StopResult};
use prometheus_client::registry::Registry;
use service_kit::{Readiness, StateCell};
use tokio::sync::{Semaphore, oneshot};

use super::*;
use crate::metrics::Metrics;

/// What tests see of the outside, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Hook,
    /// The stage that the journal held when the runtime was told to stop.
    Stop(String),
    Answer(OrderAnswer),
    Report(StopOutcome, Option<String>),
}

/// An outside with one container.
#[derive(Clone)]
struct Fake {
    store: Store,
    seen: mpsc::UnboundedSender<Seen>,
    is_exited: Arc<AtomicBool>,
    /// A stop ends when there is a permit.
    may_stop: Arc<Semaphore>,
    /// So many reports are lost.
    lost_reports: Arc<AtomicU32>,
}

impl Fake {
    async fn journaled(&self) -> String {
        let records = self.store.load().await.unwrap();
        match records.first().map(|record| record.stage.clone()) {
            None => "nothing".to_owned(),
            Some(Stage::Queued) => "queued".to_owned(),
            Some(Stage::Begun { .. }) => "begun".to_owned(),
            Some(Stage::HookDone { .. }) => "hook done".to_owned(),
            Some(Stage::Finished { .. }) => "finished".to_owned(),
        }
    }
}

impl Outside for Fake {
    type Reply = oneshot::Sender<OrderAnswer>;

    async fn inspect(&self, instance: &Instance) -> Observed {
        let state = if self.is_exited.load(Ordering::SeqCst) {
            InstanceState::Exited
        } else {
            InstanceState::Alive
        };
        Observed::Newest {
            container_id: instance.container_id.clone(),
            restart_count: 0,
            state,
        }
    }

    async fn run_hook(&self, _: &Instance, _: &PreStop, _: Duration) -> HookResult {
        self.seen.send(Seen::Hook).unwrap();
        HookResult::Succeeded
    }

    async fn stop(&self, _: &ContainerId, _: Duration) -> StopResult {
        let journaled = self.journaled().await;
        self.seen.send(Seen::Stop(journaled)).unwrap();
        self.may_stop.acquire().await.unwrap().forget();
        self.is_exited.store(true, Ordering::SeqCst);
        StopResult::Stopped
    }

    async fn report(&self, report: &StopReport, trace_parent: Option<&str>) -> Acknowledged {
        let trace_parent = trace_parent.map(str::to_owned);
        let seen = Seen::Report(report.outcome.clone(), trace_parent);
        self.seen.send(seen).unwrap();
        let lost = self
            .lost_reports
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            });
        if lost.is_ok() {
            Acknowledged::No
        } else {
            Acknowledged::Yes
        }
    }

    async fn answer(&self, reply: Self::Reply, answer: OrderAnswer) {
        if answer == OrderAnswer::Accepted {
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

/// A driver at work, as long as this lives: dropping it is a crash.
struct Process {
    fake: Fake,
    unfinished: watch::Receiver<UnfinishedStops>,
    seen: mpsc::UnboundedReceiver<Seen>,
    orders: mpsc::Sender<Incoming<oneshot::Sender<OrderAnswer>>>,
    shutdown: Shutdown,
    task: JoinSet<Result<(), DriverError>>,
}

impl Process {
    async fn start(directory: &Path, is_exited: bool) -> Self {
        let store = Store::open(directory).await.unwrap();
        let (seen_tx, seen) = mpsc::unbounded_channel();
        let fake = Fake {
            store: store.clone(),
            seen: seen_tx,
            is_exited: Arc::new(AtomicBool::new(is_exited)),
            may_stop: Arc::new(Semaphore::new(0)),
            lost_reports: Arc::default(),
        };
        let report = Report {
            node: "node-a".into(),
            metrics: Metrics::register(&mut Registry::default()),
            state: StateCell::default(),
            readiness: Readiness::default(),
            orders_held: watch::channel(0).0,
            runtime: watch::channel(None).1,
        };
        let driver = Driver::new(Settings::default(), store, fake.clone(), report);
        let unfinished = driver.unfinished();
        let (orders, incoming) = mpsc::channel(8);
        let shutdown = Shutdown::default();
        let mut task = JoinSet::new();
        task.spawn(driver.run(incoming, shutdown.clone()));
        Self {
            fake,
            unfinished,
            seen,
            orders,
            shutdown,
            task,
        }
    }

    async fn send(&self, order: StopOrder) {
        let incoming = Incoming {
            order,
            trace_parent: Some("00-parent".to_owned()),
            reply: oneshot::channel().0,
        };
        self.orders.send(incoming).await.ok().unwrap();
    }

    async fn next(&mut self) -> Seen {
        self.seen.recv().await.unwrap()
    }

    /// Ends without a goodbye, and waits until the journal's file is free.
    async fn crash(mut self) {
        self.task.shutdown().await;
    }
}

fn order(pre_stop: Option<PreStop>) -> StopOrder {
    StopOrder {
        id: OrderId::new("stop/1/main"),
        attempt: 1,
        instance: Instance {
            namespace: "shop".into(),
            pod: "web-0".into(),
            pod_uid: "uid".into(),
            container: "main".into(),
            container_id: "abc".into(),
            restart_count: 0,
        },
        grace: Duration::from_secs(30),
        pre_stop,
        begin_within: None,
        reason: "a test".to_owned(),
    }
}

fn hook() -> Option<PreStop> {
    Some(PreStop::Exec {
        command: vec!["drain".to_owned()],
    })
}

fn stopped() -> StopOutcome {
    StopOutcome::Stopped { hook_error: None }
}

fn reported() -> Seen {
    Seen::Report(stopped(), Some("00-parent".to_owned()))
}

#[tokio::test]
async fn journals_then_answers_runs_the_hook_stops_and_reports() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    process.fake.may_stop.add_permits(1);
    process.send(order(hook())).await;
    // The answer and the hook go out at the same time.
    let first = [process.next().await, process.next().await];
    assert!(
        first.contains(&Seen::Answer(OrderAnswer::Accepted)),
        "{first:?}"
    );
    assert!(first.contains(&Seen::Hook), "{first:?}");
    assert_eq!(process.next().await, Seen::Stop("hook done".to_owned()));
    assert_eq!(process.next().await, reported());
    process.send(order(hook())).await;
    let done = Seen::Answer(OrderAnswer::Done {
        container_id: order(hook()).instance.container_id,
        outcome: stopped(),
    });
    assert_eq!(process.next().await, done);
}

#[tokio::test]
async fn a_crash_in_the_middle_of_a_stop_is_made_good_after_the_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    process.send(order(None)).await;
    let first = [process.next().await, process.next().await];
    assert!(first.contains(&Seen::Stop("begun".to_owned())), "{first:?}");
    process.crash().await;
    // The runtime goes on with the stop that it was told; the journal knows of the order alone.
    let mut process = Process::start(directory.path(), true).await;
    assert_eq!(process.next().await, reported());
}

#[tokio::test]
async fn a_crash_before_the_stop_took_effect_stops_again_without_the_hook() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    process.send(order(hook())).await;
    while process.next().await != Seen::Stop("hook done".to_owned()) {}
    process.crash().await;
    let mut process = Process::start(directory.path(), false).await;
    process.fake.may_stop.add_permits(1);
    assert_eq!(process.next().await, Seen::Stop("hook done".to_owned()));
    assert_eq!(process.next().await, reported());
}

#[tokio::test]
async fn repeats_a_report_until_it_is_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    process.fake.may_stop.add_permits(1);
    process.fake.lost_reports.store(1, Ordering::SeqCst);
    process.send(order(None)).await;
    while process.next().await != reported() {}
    assert_eq!(process.next().await, reported());
}

#[tokio::test]
async fn a_stop_is_told_as_unfinished_from_its_answer_to_its_stored_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    let unfinished = |process: &Process| process.unfinished.borrow().clone().map(|all| all.len());
    process.send(order(None)).await;
    let accepted = Seen::Answer(OrderAnswer::Accepted);
    while process.next().await != accepted {}
    assert_eq!(unfinished(&process), Some(1));
    process.fake.may_stop.add_permits(1);
    while process.next().await != reported() {}
    process.shutdown.begin();
    process.task.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(unfinished(&process), Some(0));
}

#[tokio::test]
async fn a_stop_in_the_journal_is_told_as_unfinished_after_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    process.send(order(hook())).await;
    while process.next().await != Seen::Stop("hook done".to_owned()) {}
    process.crash().await;
    let mut process = Process::start(directory.path(), false).await;
    let first = process.unfinished.wait_for(Option::is_some).await.unwrap();
    assert_eq!(first.as_ref().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_shutdown_lets_a_running_stop_end_and_begins_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    process.send(order(None)).await;
    while process.next().await != Seen::Stop("begun".to_owned()) {}
    process.shutdown.begin();
    process.fake.may_stop.add_permits(1);
    process.task.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(process.fake.journaled().await, "finished");
}

#[tokio::test]
async fn an_idle_process_ends_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = Process::start(directory.path(), false).await;
    process.shutdown.begin();
    process.task.join_next().await.unwrap().unwrap().unwrap();
}

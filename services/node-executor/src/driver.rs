//! The loop: wait, decide, store, act, report.
//!
//! Owns the machine, the journal's place in the order of things, and all work in flight. Decisions are
//! `node-rules`'; how things are done outside is `outside.rs`. A journal that cannot be written ends the process.

mod report;

use std::{collections::HashMap, time::Duration};

use model::{
    ids::OrderId,
    order::{OrderAnswer, StopReport},
};
use node_rules::{Effect, Event, Machine, Record, ReplyToken, Settings, Stage};
use service_kit::{Shutdown, backoff::Backoff, clock, trace};
use tokio::{
    select,
    sync::{mpsc, watch},
    task::{JoinError, JoinSet},
    time::{Instant, sleep},
};
use tracing::{Instrument, Span, info_span};

pub(crate) use self::report::Report;
use crate::{
    orders::Incoming,
    outside::{Acknowledged, Outside},
    store::{Store, StoreError},
    unfinished::UnfinishedStops,
};

/// The wall clock may be set, so that no deadline is slept for in one go.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Keeps the nodes of a cluster from repeating their reports in step.
const REPORT_JITTER: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub(crate) enum DriverError {
    #[error("failed to read the journal")]
    Load(#[source] StoreError),
    #[error("failed to write the journal for order {order}")]
    Store {
        order: OrderId,
        #[source]
        source: StoreError,
    },
    #[error("work on an order panicked")]
    Panicked(#[source] JoinError),
}

/// Carries out what the machine decides.
pub(crate) struct Driver<O: Outside> {
    machine: Machine,
    store: Store,
    outside: O,
    report: Report,
    unfinished: watch::Sender<UnfinishedStops>,
    /// Askers without an answer.
    replies: HashMap<ReplyToken, O::Reply>,
    next_token: u64,
    /// One span for each order that is not finished: it is the parent of all that is done for it.
    spans: HashMap<OrderId, Span>,
    /// What is under way; each ends with what happened.
    work: JoinSet<Option<Event>>,
    is_draining: bool,
}

// === impl Driver ===

impl<O: Outside> Driver<O> {
    pub(crate) fn new(settings: Settings, store: Store, outside: O, report: Report) -> Self {
        Self {
            machine: Machine::new(settings),
            store,
            outside,
            report,
            unfinished: watch::Sender::new(None),
            replies: HashMap::new(),
            next_token: 0,
            spans: HashMap::new(),
            work: JoinSet::new(),
            is_draining: false,
        }
    }

    /// The stops that have not ended, as they change.
    pub(crate) fn unfinished(&self) -> watch::Receiver<UnfinishedStops> {
        self.unfinished.subscribe()
    }

    /// Takes the journal up, then works until the shutdown and until what was begun has ended.
    ///
    /// # Errors
    /// The journal failed. Nothing was answered or done that it does not hold.
    pub(crate) async fn run(
        mut self,
        mut incoming: mpsc::Receiver<Incoming<O::Reply>>,
        shutdown: Shutdown,
    ) -> Result<(), DriverError> {
        let records = self.store.load().await.map_err(DriverError::Load)?;
        self.report.recovered(&records);
        for record in &records {
            if !matches!(record.stage, Stage::Finished { .. }) {
                self.begin_span(&record.order.id, record);
            }
        }
        self.take(Event::Recovered { records }).await?;
        self.report.ready();
        while !self.is_drained() {
            if let Some(event) = self.wait(&mut incoming, &shutdown).await? {
                self.take(event).await?;
            }
        }
        Ok(())
    }

    fn is_drained(&self) -> bool {
        self.is_draining && self.machine.acting() == 0 && self.work.is_empty()
    }

    /// Waits for the next thing to happen.
    async fn wait(
        &mut self,
        incoming: &mut mpsc::Receiver<Incoming<O::Reply>>,
        shutdown: &Shutdown,
    ) -> Result<Option<Event>, DriverError> {
        let pause = self.until_deadline();
        select! {
            () = shutdown.wait(), if !self.is_draining => {
                self.is_draining = true;
                Ok(Some(Event::DrainBegun))
            }
            Some(ended) = self.work.join_next() => ended.map_err(DriverError::Panicked),
            Some(incoming) = incoming.recv() => Ok(Some(self.admit(incoming))),
            () = sleep(pause) => Ok(Some(Event::Tick)),
        }
    }

    fn until_deadline(&self) -> Duration {
        let Some(deadline) = self.machine.next_deadline() else {
            return LONGEST_SLEEP;
        };
        let left = Duration::try_from(clock::now().duration_until(deadline));
        left.unwrap_or(Duration::ZERO).min(LONGEST_SLEEP)
    }

    fn admit(&mut self, incoming: Incoming<O::Reply>) -> Event {
        let Incoming {
            order,
            trace_parent,
            reply,
        } = incoming;
        let token = ReplyToken(self.next_token);
        self.next_token += 1;
        self.replies.insert(token, reply);
        if !self.machine.is_known(&order.id) {
            let span = order_span(&order.id, &order.instance, trace_parent.as_deref());
            self.spans.insert(order.id.clone(), span);
        }
        Event::Ordered {
            order,
            trace_parent,
            reply: token,
        }
    }

    /// Decides on an event and carries the decision out, in its order.
    async fn take(&mut self, event: Event) -> Result<(), DriverError> {
        let order = event.order().cloned();
        self.report.happened(&event);
        let effects = self.machine.on_event(event, clock::now());
        // A stop stands here before its order is answered, and until its end is stored.
        let unfinished: Vec<_> = self.machine.unfinished_stops().collect();
        self.unfinished.send_modify(|known| {
            known.get_or_insert_default().extend(unfinished.clone());
        });
        for effect in effects {
            if let (Effect::Answer { answer, .. }, Some(order)) = (&effect, &order) {
                self.report.answered(order, answer);
            }
            self.perform(effect).await?;
        }
        if let Some(order) = order {
            self.end_span_when_over(&order);
        }
        self.unfinished.send_replace(Some(unfinished));
        self.report.state(&self.machine);
        Ok(())
    }

    async fn perform(&mut self, effect: Effect) -> Result<(), DriverError> {
        match effect {
            Effect::Store(record) => self.put(&record).await,
            Effect::Forget(order) => self
                .store
                .remove(&order)
                .await
                .map_err(|source| DriverError::Store { order, source }),
            Effect::Answer { reply, answer } => {
                self.answer(reply, answer);
                Ok(())
            }
            Effect::Inspect { order, instance } => {
                let outside = self.outside.clone();
                self.begin_work(order.clone(), async move {
                    let observed = outside.inspect(&instance).await;
                    Event::Inspected { order, observed }
                });
                Ok(())
            }
            Effect::RunHook {
                order,
                instance,
                hook,
                deadline,
            } => {
                let outside = self.outside.clone();
                let left = Duration::try_from(clock::now().duration_until(deadline));
                self.begin_work(order.clone(), async move {
                    let limit = left.unwrap_or(Duration::ZERO);
                    let result = outside.run_hook(&instance, &hook, limit).await;
                    Event::HookEnded { order, result }
                });
                Ok(())
            }
            Effect::Stop {
                order,
                container_id,
                timeout,
            } => {
                let outside = self.outside.clone();
                self.begin_work(order.clone(), async move {
                    let result = outside.stop(&container_id, timeout).await;
                    Event::StopEnded { order, result }
                });
                Ok(())
            }
            Effect::Report(report) => {
                self.send_report(report);
                Ok(())
            }
        }
    }

    async fn put(&self, record: &Record) -> Result<(), DriverError> {
        let begun = Instant::now();
        let stored = self.store.put(record).await;
        stored.map_err(|source| DriverError::Store {
            order: record.order.id.clone(),
            source,
        })?;
        self.report.stored(record, begun.elapsed());
        Ok(())
    }

    fn answer(&mut self, token: ReplyToken, answer: OrderAnswer) {
        if let Some(reply) = self.replies.remove(&token) {
            let outside = self.outside.clone();
            self.work.spawn(async move {
                outside.answer(reply, answer).await;
                None
            });
        }
    }

    fn send_report(&mut self, report: StopReport) {
        let outside = self.outside.clone();
        let order = report.order.clone();
        let span = self.span_of(&order);
        let stored = self.machine.record(&order);
        let trace_parent = trace::traceparent_of(&span)
            .or_else(|| stored.and_then(|record| record.trace_parent.clone()));
        self.begin_work(order.clone(), async move {
            let sequence = report.sequence;
            match outside.report(&report, trace_parent.as_deref()).await {
                Acknowledged::Yes => Event::ReportAcknowledged { order, sequence },
                Acknowledged::No => {
                    sleep(Backoff::new(REPORT_JITTER, REPORT_JITTER).next_delay()).await;
                    Event::ReportFailed { order, sequence }
                }
            }
        });
    }

    /// Does something slow beside the loop, in the order's span.
    fn begin_work(&mut self, order: OrderId, work: impl Future<Output = Event> + Send + 'static) {
        let span = self.span_of(&order);
        self.work
            .spawn(async move { Some(work.await) }.instrument(span));
    }

    fn begin_span(&mut self, order: &OrderId, record: &Record) {
        let trace_parent = record.trace_parent.as_deref();
        let span = order_span(order, &record.order.instance, trace_parent);
        self.spans.insert(order.clone(), span);
    }

    fn span_of(&self, order: &OrderId) -> Span {
        self.spans.get(order).cloned().unwrap_or_else(Span::none)
    }

    /// A refused or finished order's span ends once the work begun in it has.
    fn end_span_when_over(&mut self, order: &OrderId) {
        let is_over = match self.machine.record(order) {
            Some(record) => matches!(record.stage, Stage::Finished { .. }),
            None => !self.machine.is_known(order),
        };
        if is_over {
            self.spans.remove(order);
        }
    }
}

fn order_span(
    order: &OrderId,
    instance: &model::order::Instance,
    trace_parent: Option<&str>,
) -> Span {
    let span = info_span!(
        "order",
        %order,
        ns = %instance.namespace,
        pod = %instance.pod,
        uid = %instance.pod_uid,
        container = %instance.container,
    );
    if let Some(trace_parent) = trace_parent {
        trace::set_parent(&span, trace_parent);
    }
    span
}

#[cfg(test)]
mod tests;

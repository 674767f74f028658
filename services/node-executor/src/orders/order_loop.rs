//! The loop: wait, decide, store, act, report.
//!
//! Owns the machine, the order of journal writes and effects, and all running work. `node-rules` decides; `io.rs` has
//! the IO. A journal that cannot be written ends the process.

use std::collections::HashMap;

use model::{
    order::{Answer, Instance},
    order_id::{OrderId, Task},
};
use node_rules::{Action, Effects, Event, Machine, ReplyToken, Settings, Stage};
use service_kit::{Shutdown, clock::Clock, trace};
use tokio::{
    select,
    sync::mpsc,
    task::{JoinError, JoinSet},
    time::Instant,
};
use tracing::{Instrument, Span, info_span};

use super::{
    inlet::Incoming,
    io::NodeIo,
    journal::{Journal, JournalError},
    report::Report,
};

/// Why the loop ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OrderLoopError {
    #[error("failed to load the journal")]
    Load(#[source] JournalError),
    #[error("failed to store the orders")]
    Store(#[source] JournalError),
    #[error("work on an order panicked")]
    Panicked(#[source] JoinError),
}

/// Carries out what the machine decides.
pub(crate) struct OrderLoop<N: NodeIo> {
    machine: Machine,
    journal: Journal,
    io: N,
    report: Report,
    clock: Clock,
    /// Orders without an answer.
    replies: HashMap<ReplyToken, (OrderId, N::Reply)>,
    next_token: u64,
    /// One span for each unfinished order: the parent of its work.
    spans: HashMap<OrderId, Span>,
    /// Running work; its result is the next event.
    work: JoinSet<Option<Event>>,
    is_draining: bool,
}

// === impl OrderLoop ===

impl<N: NodeIo> OrderLoop<N> {
    pub(crate) fn new(settings: Settings, journal: Journal, io: N, report: Report) -> Self {
        Self {
            machine: Machine::new(settings),
            journal,
            io,
            report,
            clock: Clock::start(),
            replies: HashMap::new(),
            next_token: 0,
            spans: HashMap::new(),
            work: JoinSet::new(),
            is_draining: false,
        }
    }

    /// Loads the journal, then works until the shutdown has begun and all running work has ended.
    ///
    /// # Errors
    /// The journal failed. Every answer and effect so far is in the journal.
    pub(crate) async fn run(
        mut self,
        mut incoming: mpsc::Receiver<Incoming<N::Reply>>,
        shutdown: Shutdown,
    ) -> Result<(), OrderLoopError> {
        let records = self.journal.load().await.map_err(OrderLoopError::Load)?;
        self.report.recovered(&records);
        for record in &records {
            if !matches!(record.stage, Stage::Finished { .. }) {
                let (order, traceparent) = (&record.order, record.traceparent.as_deref());
                self.begin_span(&order.id, &order.instance, traceparent);
            }
        }
        self.take(Event::Recovered { records }).await?;
        self.report.readiness.set("journal", true);
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

    /// Waits for the next event.
    async fn wait(
        &mut self,
        incoming: &mut mpsc::Receiver<Incoming<N::Reply>>,
        shutdown: &Shutdown,
    ) -> Result<Option<Event>, OrderLoopError> {
        let deadline = self.machine.next_deadline(self.clock.now());
        select! {
            () = shutdown.wait(), if !self.is_draining => {
                self.is_draining = true;
                Ok(Some(Event::DrainBegun))
            }
            Some(ended) = self.work.join_next() => ended.map_err(OrderLoopError::Panicked),
            Some(incoming) = incoming.recv() => Ok(Some(self.admit(incoming))),
            () = self.clock.wait(deadline) => Ok(Some(Event::Tick)),
        }
    }

    fn admit(&mut self, incoming: Incoming<N::Reply>) -> Event {
        let order = &incoming.sending.order;
        if !self.machine.is_known(&order.id) {
            self.begin_span(&order.id, &order.instance, incoming.traceparent.as_deref());
        }
        let token = ReplyToken(self.next_token);
        self.next_token += 1;
        self.replies
            .insert(token, (order.id.clone(), incoming.reply));
        Event::Ordered {
            sending: incoming.sending,
            traceparent: incoming.traceparent,
            reply: token,
        }
    }

    /// Decides on an event and carries out its effects in their order.
    async fn take(&mut self, event: Event) -> Result<(), OrderLoopError> {
        let order = event.order().cloned();
        self.report.happened(&event);
        let effects = self.machine.on_event(event, self.clock.now());
        self.store(&effects).await?;
        for (token, answer) in effects.answers {
            self.answer(token, answer);
        }
        for action in effects.actions {
            self.begin(action);
        }
        if let Some(order) = order {
            self.end_span_when_over(&order);
        }
        self.report.state(&self.machine);
        Ok(())
    }

    async fn store(&self, effects: &Effects) -> Result<(), OrderLoopError> {
        if effects.store.is_empty() && effects.forget.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let stored = self.journal.write(&effects.store, &effects.forget).await;
        stored.map_err(OrderLoopError::Store)?;
        self.report.stored(&effects.store, begun.elapsed());
        Ok(())
    }

    fn answer(&mut self, token: ReplyToken, answer: Answer) {
        let Some((order, reply)) = self.replies.remove(&token) else {
            return;
        };
        let span = self.span_of(&order);
        span.in_scope(|| self.report.answered(&order, &answer));
        let io = self.io.clone();
        self.work.spawn(async move {
            io.answer(reply, answer).await;
            None
        });
    }

    /// Begins work beside the loop, in the order's span.
    fn begin(&mut self, action: Action) {
        let span = self.span_of(action.order());
        let record = self.machine.record(action.order());
        let traceparent = record.and_then(|record| record.traceparent);
        let io = self.io.clone();
        let work = async move { Some(io.act(action, traceparent).await) };
        self.work.spawn(work.instrument(span));
    }

    fn begin_span(&mut self, order: &OrderId, instance: &Instance, traceparent: Option<&str>) {
        let span = order_span(order, instance);
        if let Some(traceparent) = traceparent {
            trace::set_parent(&span, traceparent);
        }
        self.spans.insert(order.clone(), span);
    }

    fn span_of(&self, order: &OrderId) -> Span {
        self.spans.get(order).cloned().unwrap_or_else(Span::none)
    }

    /// Ends the span of a refused or finished order; running work keeps it open.
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

fn order_span(order: &OrderId, instance: &Instance) -> Span {
    // `drop` is the wire's name of a removal.
    macro_rules! span {
        ($name:literal) => {
            info_span!(
                $name,
                %order,
                ns = %instance.namespace,
                pod = %instance.pod,
                uid = %instance.pod_uid,
                container = %instance.container,
            )
        };
    }
    match order.task {
        Task::Stop => span!("order"),
        Task::RemoveDeadInstances => span!("drop"),
    }
}

#[cfg(test)]
mod tests;

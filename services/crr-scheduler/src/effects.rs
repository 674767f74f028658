//! The effects of the machine as requests: each is a task that ends with the event that the machine waits for.
//!
//! Owns the tasks under way, the pod watches, the messages that wait for an answer, and the spans of active CRRs. Nothing
//! is decided here.

use std::collections::HashMap;

use api_client::events::publish_with_retry;
use bus::{Bus, Delivery, Reply, RequestError};
use crr_rules::{CrrEvent, Effect, Event, ReplyToken, Write, WriteResult};
use futures::{StreamExt, pin_mut};
use model::{
    crr::Crr,
    error_chain::ErrorChain,
    ids::{CrrKey, CrrUid, NodeName, PodKey, PodUid},
    order::{Report, Sending},
    presence::{PresenceAnswer, PresenceQuestion},
};
use order_rules::{ANSWER_WITHIN, Silence};
use service_kit::{Clock, trace};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinError, JoinSet},
};
use tracing::{Instrument, Span, debug, info, info_span, warn};
use wire::ReportAck;

use crate::{
    cluster::{Cluster, WriteError},
    metrics::Metrics,
};

/// How many pod changes may wait for the loop before their watches do.
const POD_CHANGES: usize = 256;

/// Carries effects out.
pub(crate) struct Effects {
    cluster: Cluster,
    bus: Bus,
    metrics: Metrics,
    clock: Clock,
    /// Requests under way.
    requests: JoinSet<Option<Event>>,
    /// Pod watches; they end only by being aborted.
    watches: JoinSet<()>,
    watched: HashMap<PodKey, AbortHandle>,
    pod_changes: (mpsc::Sender<Event>, mpsc::Receiver<Event>),
    reports: HashMap<ReplyToken, Reply<ReportAck>>,
    questions: HashMap<ReplyToken, Reply<PresenceAnswer>>,
    next_token: u64,
    /// One span for each active CRR: the parent of all that is done for it.
    spans: HashMap<CrrUid, Span>,
}

// === impl Effects ===

impl Effects {
    pub(crate) fn new(cluster: Cluster, bus: Bus, metrics: Metrics, clock: Clock) -> Self {
        Self {
            cluster,
            bus,
            metrics,
            clock,
            requests: JoinSet::new(),
            watches: JoinSet::new(),
            watched: HashMap::new(),
            pod_changes: mpsc::channel(POD_CHANGES),
            reports: HashMap::new(),
            questions: HashMap::new(),
            next_token: 0,
            spans: HashMap::new(),
        }
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(crate) fn bus(&self) -> &Bus {
        &self.bus
    }

    /// The next answer to a request, or change of a watched pod; `None` if the machine does not wait for it. Cancel-safe.
    ///
    /// # Errors
    /// A request's task was lost.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, JoinError> {
        tokio::select! {
            Some(ended) = self.requests.join_next() => ended,
            Some(change) = self.pod_changes.1.recv() => Ok(Some(change)),
        }
    }

    pub(crate) fn on_report(&mut self, delivery: Delivery<Report, ReportAck>) -> Event {
        let Delivery {
            message,
            node,
            reply,
            ..
        } = delivery;
        info!(order = %message.order, %node, outcome = ?message.outcome, "Report received");
        let token = self.token();
        self.reports.insert(token, reply);
        Event::Reported {
            report: Box::new(message),
            node,
            reply: token,
        }
    }

    pub(crate) fn on_question(
        &mut self,
        delivery: Delivery<PresenceQuestion, PresenceAnswer>,
    ) -> Event {
        let token = self.token();
        self.questions.insert(token, delivery.reply);
        Event::PresenceAsked {
            question: delivery.message,
            reply: token,
        }
    }

    fn token(&mut self) -> ReplyToken {
        self.next_token += 1;
        ReplyToken(self.next_token)
    }

    /// Begins to carry an effect out.
    pub(crate) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Write { crr, write } => self.write(*crr, *write),
            Effect::Send { crr, node, sending } => self.send(&crr, node, *sending),
            Effect::Nudge {
                crr,
                uid,
                pod,
                pod_uid,
            } => self.nudge((crr, uid), (pod, pod_uid)),
            Effect::Publish { crr, event } => self.publish(*crr, event),
            Effect::WatchPod(pod) => self.watch(pod),
            Effect::UnwatchPod(pod) => {
                if let Some(watch) = self.watched.remove(&pod) {
                    watch.abort();
                }
                // Ended watches are removed here, so that the set does not grow.
                while self.watches.try_join_next().is_some() {}
            }
            Effect::Acknowledge(token) => {
                if let Some(reply) = self.reports.remove(&token) {
                    self.answer(reply, ReportAck);
                }
            }
            Effect::Ignore(token) => {
                warn!("Report on another node's order ignored");
                self.reports.remove(&token);
            }
            Effect::AnswerPresence { reply, answer } => {
                if let Some(reply) = self.questions.remove(&reply) {
                    self.answer(reply, answer);
                }
            }
            Effect::Began(crr) => {
                let span =
                    info_span!("recreate", crr = %crr.key, pod = %crr.pod.name, uid = %crr.uid);
                if let Some(traceparent) = &crr.traceparent {
                    trace::set_parent(&span, traceparent);
                }
                self.spans.insert(crr.uid, span);
            }
            Effect::Ended { crr, is_completed } => {
                self.spans.remove(&crr.uid); // Dropping the span ends it.
                if is_completed {
                    self.metrics.count_end(&crr, self.clock.now().wall);
                }
            }
        }
    }

    fn span_of(&self, crr: &CrrUid) -> Span {
        self.spans.get(crr).cloned().unwrap_or_else(Span::none)
    }

    fn write(&mut self, crr: Crr, write: Write) {
        let parent = &self.span_of(&crr.uid);
        let span = match &write {
            Write::Status(status) => {
                let phase = status.phase.map(|phase| format!("{phase:?}"));
                let phase = phase.unwrap_or_default();
                if status.phase != crr.status.phase {
                    info!(crr = %crr.key, phase, message = status.message, "Phase changes");
                }
                info_span!(parent: parent, "write status", phase)
            }
            Write::Gate(gate) => {
                let is_open = gate.is_open;
                info!(crr = %crr.key, is_open, message = gate.message, "Pod's readiness gate changes");
                info_span!(parent: parent, "write readiness gate", is_open)
            }
            Write::Delete => {
                info!(crr = %crr.key, "TTL has passed; deleting the CRR");
                Span::none()
            }
            Write::AddFinalizer | Write::Close => Span::none(),
        };
        let (cluster, metrics) = (self.cluster.clone(), self.metrics.clone());
        let now = self.clock.now().wall;
        let request = async move {
            let written = cluster.write(&crr, &write, now).await;
            metrics.count_write(written.as_ref().err());
            Some(Event::Written {
                result: result_of(&crr.key, written),
                crr: crr.key,
                uid: crr.uid,
            })
        };
        self.requests.spawn(request.instrument(span));
    }

    fn send(&mut self, crr: &CrrUid, node: NodeName, sending: Sending) {
        let id = &sending.order.id;
        let (container, attempt) = (&id.container, sending.attempt);
        let parent = &self.span_of(crr);
        let span =
            info_span!(parent: parent, "send order", task = ?id.task, %container, %node, attempt);
        let traceparent = trace::traceparent_of(&span);
        let (bus, metrics) = (self.bus.clone(), self.metrics.clone());
        let request = async move {
            let sent = bus.send_order(&node, &sending, traceparent.as_deref(), ANSWER_WITHIN);
            let order = sending.order.id.clone();
            let result = sent.await.map_err(|error| silence_of(&bus, &error));
            metrics.count_order(&result);
            match &result {
                Ok(answer) => info!(%order, ?answer, "Order answered"),
                Err(silence) => warn!(%order, ?silence, "Order not answered; it is sent again"),
            }
            Some(Event::Answered { order, result })
        };
        self.requests.spawn(request.instrument(span));
    }

    fn nudge(&mut self, (crr, uid): (CrrKey, CrrUid), (pod, pod_uid): (PodKey, PodUid)) {
        let span = info_span!(parent: &self.span_of(&uid), "nudge");
        let (cluster, metrics) = (self.cluster.clone(), self.metrics.clone());
        let now = self.clock.now().wall;
        let request = async move {
            let nudged = cluster.nudge(&pod, &pod_uid, now).await;
            metrics.count_write(nudged.as_ref().err());
            if let Err(error) = &nudged {
                warn!(%crr, error = %ErrorChain(error), "Failed to nudge the pod");
            }
            let is_done = nudged.is_ok();
            Some(Event::Nudged { crr, uid, is_done })
        };
        self.requests.spawn(request.instrument(span));
    }

    /// Events may be lost: the status is the truth.
    fn publish(&mut self, crr: Crr, event: CrrEvent) {
        let (cluster, now) = (self.cluster.clone(), self.clock.now().wall);
        self.requests.spawn(async move {
            if let Err(error) = publish_with_retry(|| cluster.publish(&crr, &event, now)).await {
                let error = ErrorChain(&error).to_string();
                debug!(crr = %crr.key, event.name, error, "Event was not published");
            }
            None
        });
    }

    fn watch(&mut self, pod: PodKey) {
        let views = self.cluster.watch_pod(&pod);
        let (changes, key) = (self.pod_changes.0.clone(), pod.clone());
        let watch = self.watches.spawn(async move {
            pin_mut!(views);
            while let Some(view) = views.next().await {
                let pod = key.clone();
                if changes.send(Event::PodSeen { pod, view }).await.is_err() {
                    return; // The loop has ended.
                }
            }
        });
        self.watched.insert(pod, watch);
    }

    fn answer<A: wire::Message + Send + 'static>(&mut self, reply: Reply<A>, answer: A) {
        self.requests.spawn(async move {
            if let Err(error) = reply.send(answer).await {
                debug!(error = %ErrorChain(&error), "Answer was not sent");
            }
            None
        });
    }
}

fn result_of(crr: &CrrKey, written: Result<WriteResult, WriteError>) -> WriteResult {
    match written {
        Ok(result) => result,
        Err(WriteError::Conflict) => {
            debug!(%crr, "The object has changed since it was read");
            WriteResult::Conflict
        }
        Err(WriteError::Gone) => WriteResult::Gone,
        Err(error @ WriteError::Failed(_)) => {
            warn!(%crr, error = %ErrorChain(&error), "Write failed; it is retried");
            WriteResult::Failed
        }
    }
}

/// Which side is silent when a request is not answered.
fn silence_of(bus: &Bus, error: &RequestError) -> Silence {
    match error {
        RequestError::NoResponders { .. } | RequestError::Timeout { .. } if bus.is_connected() => {
            Silence::Node
        }
        RequestError::Malformed { .. } => Silence::Node,
        RequestError::NoResponders { .. }
        | RequestError::Timeout { .. }
        | RequestError::Disconnected
        | RequestError::Failed { .. } => Silence::Bus,
    }
}

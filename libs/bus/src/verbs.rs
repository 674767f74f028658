//! What the product says over the bus: one function for each kind of message.
//!
//! Owns which subject and which answer belong together (docs/protocol.md).

use std::time::Duration;

use model::{
    ids::NodeName,
    launch::Started,
    order::{
        DropAnswer, DropOrder, NodeAnswer, NodeOrder, OrderAnswer, Refusal, StopOrder, StopReport,
    },
    presence::{Answer, Presence, Question},
};
use wire::{InvalidMessage, Message, decode_presence, encode_presence};

use crate::{
    Bus, Deliveries, PublishError, RequestError, SubscribeError,
    delivery::Reader,
    subjects::{self, ALL_PRESENCES, ALL_REPORTS, ALL_STARTED, ASK_PRESENCE},
};

impl Bus {
    /// Orders a stop of a node. Repeat it until it is answered: a late or double order does no harm.
    ///
    /// # Errors
    /// No answer, and why.
    pub async fn send_order(
        &self,
        node: &NodeName,
        order: &StopOrder,
        traceparent: Option<&str>,
        deadline: Duration,
    ) -> Result<OrderAnswer, RequestError> {
        self.ask(subjects::order(node), order.encode(), traceparent, deadline)
            .await
    }

    /// Orders a drop of dead instances of a node. Repeat it for as long as it is wanted.
    ///
    /// # Errors
    /// No answer, and why.
    pub async fn send_drop_order(
        &self,
        node: &NodeName,
        order: &DropOrder,
        traceparent: Option<&str>,
        deadline: Duration,
    ) -> Result<DropAnswer, RequestError> {
        self.ask(subjects::order(node), order.encode(), traceparent, deadline)
            .await
    }

    /// The orders to a node.
    ///
    /// # Errors
    /// The connection is closed for good.
    pub async fn serve_orders(
        &self,
        node: &NodeName,
    ) -> Result<Deliveries<NodeOrder, NodeAnswer>, SubscribeError> {
        let reader = Reader {
            read: |_, bytes| NodeOrder::decode(bytes),
            refuse: refuse_order,
        };
        Deliveries::subscribe(self, subjects::order(node), reader).await
    }

    /// Reports to whoever leads. `Ok`: a leader has taken it; otherwise repeat it.
    ///
    /// # Errors
    /// No acknowledgement, and why.
    pub async fn send_report(
        &self,
        node: &NodeName,
        report: &StopReport,
        traceparent: Option<&str>,
        deadline: Duration,
    ) -> Result<(), RequestError> {
        self.ask(
            subjects::report(node),
            report.encode(),
            traceparent,
            deadline,
        )
        .await
    }

    /// The reports of all nodes. Only a leader may serve them: its answer ends their repetition.
    ///
    /// # Errors
    /// The connection is closed for good.
    pub async fn serve_reports(&self) -> Result<Deliveries<StopReport, ()>, SubscribeError> {
        let reader = Reader {
            read: |_, bytes| StopReport::decode(bytes),
            refuse: |_| None,
        };
        Deliveries::subscribe(self, ALL_REPORTS.to_owned(), reader).await
    }

    /// Gives a sign of life; it may be lost.
    ///
    /// # Errors
    /// The bus is away, and nothing was sent.
    pub async fn publish_presence(&self, presence: &Presence) -> Result<(), PublishError> {
        let subject = subjects::presence(&presence.node);
        self.publish(subject.into(), encode_presence(presence))
            .await
    }

    /// The signs of life of all nodes.
    ///
    /// # Errors
    /// The connection is closed for good.
    pub async fn watch_presence(&self) -> Result<Deliveries<Presence, ()>, SubscribeError> {
        let reader = Reader {
            read: decode_presence,
            refuse: |_| None,
        };
        Deliveries::subscribe(self, ALL_PRESENCES.to_owned(), reader).await
    }

    /// Tells that a container behind a launch barrier has started; it may be lost.
    ///
    /// # Errors
    /// The bus is away, and nothing was sent.
    pub async fn publish_started(
        &self,
        node: &NodeName,
        started: &Started,
    ) -> Result<(), PublishError> {
        let subject = subjects::started(node);
        self.publish(subject.into(), started.encode()).await
    }

    /// The starts of all nodes.
    ///
    /// # Errors
    /// The connection is closed for good.
    pub async fn watch_started(&self) -> Result<Deliveries<Started, ()>, SubscribeError> {
        let reader = Reader {
            read: |_, bytes| Started::decode(bytes),
            refuse: |_| None,
        };
        Deliveries::subscribe(self, ALL_STARTED.to_owned(), reader).await
    }

    /// Asks the leader what it knows around a request.
    ///
    /// # Errors
    /// No answer, and why: perhaps nobody leads just now.
    pub async fn ask_leader(
        &self,
        question: &Question,
        deadline: Duration,
    ) -> Result<Answer, RequestError> {
        self.ask(ASK_PRESENCE.to_owned(), question.encode(), None, deadline)
            .await
    }

    /// The questions to the leader. Only a leader may serve them.
    ///
    /// # Errors
    /// The connection is closed for good.
    pub async fn serve_questions(&self) -> Result<Deliveries<Question, Answer>, SubscribeError> {
        let reader = Reader {
            read: |_, bytes| Question::decode(bytes),
            refuse: |_| None,
        };
        Deliveries::subscribe(self, ASK_PRESENCE.to_owned(), reader).await
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of `Reader::refuse`")]
fn refuse_order(error: &InvalidMessage) -> Option<NodeAnswer> {
    let message = error.to_string();
    let refusal = OrderAnswer::Refused(Refusal::Invalid { message });
    Some(refusal.into())
}

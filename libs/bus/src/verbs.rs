//! What the product says over the bus: one function for each kind of message.
//!
//! Owns which subject and which answer belong together (docs/protocol.md).

use std::time::Duration;

use model::{
    error_chain::ErrorChain,
    ids::NodeName,
    launch::Started,
    order::{Answer, Refusal, Report, Sending},
    order_id::Orderer,
    presence::{Presence, PresenceAnswer, PresenceQuestion},
};
use wire::{InvalidMessage, Message, ReportAck, decode_presence, encode_presence};

use crate::{
    Bus, Deliveries, Publications, PublishError, RequestError, SubscribeError,
    subjects::{self, ALL_PRESENCES, ALL_STARTED, ASK_PRESENCE},
};

impl Bus {
    /// Sends an order to a node. Repeat it until it is answered: a late or repeated order does no harm.
    ///
    /// # Errors
    /// No answer within `deadline`, and why.
    pub async fn send_order(
        &self,
        node: &NodeName,
        sending: &Sending,
        traceparent: Option<&str>,
        deadline: Duration,
    ) -> Result<Answer, RequestError> {
        let subject = subjects::order(node);
        self.ask(subject, sending.encode(), traceparent, deadline)
            .await
    }

    /// The orders to a node.
    ///
    /// # Errors
    /// The connection is closed for good.
    pub async fn serve_orders(
        &self,
        node: &NodeName,
    ) -> Result<Deliveries<Sending, Answer>, SubscribeError> {
        Deliveries::subscribe(self, vec![subjects::order(node)], refuse_order).await
    }

    /// Reports the end of an order to the leader that gave it. `Ok`: it has the report; otherwise repeat it.
    ///
    /// # Errors
    /// No acknowledgement within `deadline`, and why.
    pub async fn send_report(
        &self,
        node: &NodeName,
        report: &Report,
        traceparent: Option<&str>,
        deadline: Duration,
    ) -> Result<(), RequestError> {
        let subject = subjects::report(report.order.orderer(), node);
        let ReportAck = self
            .ask(subject, report.encode(), traceparent, deadline)
            .await?;
        Ok(())
    }

    /// The reports of all nodes on orders of one controller. Only its leader may serve them: the answer ends a report's
    /// repetition.
    ///
    /// # Errors
    /// The connection is closed for good.
    pub async fn serve_reports(
        &self,
        orderer: Orderer,
    ) -> Result<Deliveries<Report, ReportAck>, SubscribeError> {
        Deliveries::subscribe(self, subjects::all_reports(orderer), |_| None).await
    }

    /// Publishes a node's presence; it may be lost.
    ///
    /// # Errors
    /// The bus is away, and nothing was sent.
    pub async fn publish_presence(&self, presence: &Presence) -> Result<(), PublishError> {
        let subject = subjects::presence(&presence.node);
        self.publish(subject.into(), encode_presence(presence))
            .await
    }

    /// The presences of all nodes.
    ///
    /// # Errors
    /// The connection is closed for good.
    pub async fn watch_presence(&self) -> Result<Publications<Presence>, SubscribeError> {
        Publications::subscribe(self, ALL_PRESENCES, decode_presence).await
    }

    /// Publishes that a container behind a launch barrier has started; it may be lost.
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

    /// The container starts of all nodes.
    ///
    /// # Errors
    /// The connection is closed for good.
    pub async fn watch_started(&self) -> Result<Publications<Started>, SubscribeError> {
        Publications::subscribe(self, ALL_STARTED, |_, bytes| Started::decode(bytes)).await
    }

    /// Asks the leading crr-scheduler when a node was last seen, and for the active requests of a pod.
    ///
    /// # Errors
    /// No answer within `deadline`, and why: perhaps there is no leader.
    pub async fn ask_presence(
        &self,
        question: &PresenceQuestion,
        deadline: Duration,
    ) -> Result<PresenceAnswer, RequestError> {
        self.ask(ASK_PRESENCE.to_owned(), question.encode(), None, deadline)
            .await
    }

    /// The presence questions. Only a leader may serve them.
    ///
    /// # Errors
    /// The connection is closed for good.
    pub async fn serve_presence_questions(
        &self,
    ) -> Result<Deliveries<PresenceQuestion, PresenceAnswer>, SubscribeError> {
        Deliveries::subscribe(self, vec![ASK_PRESENCE.to_owned()], |_| None).await
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the shape of `Deliveries::refuse`"
)]
fn refuse_order(error: &InvalidMessage) -> Option<Answer> {
    let message = ErrorChain(error).to_string();
    Some(Answer::Refused(Refusal::Invalid { message }))
}

//! Messages that come in, and the answers that go back.
//!
//! Owns the reading of a subscription. A malformed message is logged and answered with what its kind of
//! question takes for that; it never ends a service.

use std::marker::PhantomData;

use async_nats::{Subject, Subscriber};
use futures::{
    StreamExt,
    stream::{SelectAll, select_all},
};
use model::{error_chain::ErrorChain, ids::NodeName};
use tracing::warn;
use wire::{InvalidMessage, Message};

use crate::{Bus, request::TRACE_PARENT, subjects};

#[derive(Debug, thiserror::Error)]
#[error("failed to subscribe to {subject}")]
pub struct SubscribeError {
    pub subject: String,
    #[source]
    pub source: async_nats::SubscribeError,
}

/// Why something was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Nothing was sent: what is queued during an outage comes late, and all at once.
    #[error("not connected to the bus")]
    Disconnected,
    #[error("failed to publish on {subject}")]
    Failed {
        subject: String,
        #[source]
        source: async_nats::PublishError,
    },
}

/// One message, who sent it as the subject says, and the way back.
#[derive(Debug)]
pub struct Delivery<M, A> {
    pub message: M,
    /// The node that the subject names; empty where it names none.
    pub node: NodeName,
    pub traceparent: Option<String>,
    pub reply: Reply<A>,
}

/// The way back to one asker.
#[derive(Debug)]
pub struct Reply<A> {
    bus: Bus,
    to: Option<Subject>,
    answer: PhantomData<fn(A)>,
}

impl<A: Message> Reply<A> {
    /// Answers; a message that nobody waits on an answer of needs none.
    ///
    /// # Errors
    /// The bus is away: whoever asked will ask again.
    pub async fn send(self, answer: A) -> Result<(), PublishError> {
        match self.to {
            Some(to) => self.bus.publish(to, answer.encode()).await,
            None => Ok(()),
        }
    }
}

impl Bus {
    /// Sends now or not at all.
    pub(crate) async fn publish(
        &self,
        subject: Subject,
        message: Vec<u8>,
    ) -> Result<(), PublishError> {
        if !self.is_connected() {
            return Err(PublishError::Disconnected);
        }
        let published = self.client.publish(subject.clone(), message.into()).await;
        published.map_err(|source| PublishError::Failed {
            subject: subject.to_string(),
            source,
        })
    }

    async fn subscribe(&self, subject: String) -> Result<Subscriber, SubscribeError> {
        let subscriber = self.client.subscribe(subject.clone()).await;
        subscriber.map_err(|source| SubscribeError { subject, source })
    }
}

/// The requests of a subscription, for as long as the connection exists; it survives reconnections.
pub struct Deliveries<M, A> {
    bus: Bus,
    subscriber: SelectAll<Subscriber>,
    read: fn(&[u8]) -> Result<M, InvalidMessage>,
    /// The answer to a message that cannot be read, if its sender waits for one.
    refuse: fn(&InvalidMessage) -> Option<A>,
}

impl<M: Message, A: Message> Deliveries<M, A> {
    pub(crate) async fn subscribe(
        bus: &Bus,
        subjects: Vec<String>,
        refuse: fn(&InvalidMessage) -> Option<A>,
    ) -> Result<Self, SubscribeError> {
        let mut subscribers = Vec::new();
        for subject in subjects {
            subscribers.push(bus.subscribe(subject).await?);
        }
        Ok(Self {
            bus: bus.clone(),
            subscriber: select_all(subscribers),
            read: M::decode,
            refuse,
        })
    }

    /// The next request that can be read. Cancel-safe. `None` when the connection is closed for good.
    pub async fn next(&mut self) -> Option<Delivery<M, A>> {
        loop {
            let message = self.subscriber.next().await?;
            if let Some(delivery) = self.read(message).await {
                return Some(delivery);
            }
        }
    }

    async fn read(&self, message: async_nats::Message) -> Option<Delivery<M, A>> {
        let reply = Reply {
            bus: self.bus.clone(),
            to: message.reply,
            answer: PhantomData,
        };
        let node = sender_of(&message.subject);
        let error = match (self.read)(&message.payload) {
            Ok(content) => {
                let headers = message.headers.as_ref();
                let traceparent = headers.and_then(|headers| headers.get(TRACE_PARENT));
                return Some(Delivery {
                    message: content,
                    node,
                    traceparent: traceparent.map(ToString::to_string),
                    reply,
                });
            }
            Err(error) => error,
        };
        warn!(subject = %message.subject, error = %ErrorChain(&error), "Message cannot be read");
        if let Some(answer) = (self.refuse)(&error)
            && let Err(error) = reply.send(answer).await
        {
            warn!(error = %ErrorChain(&error), "Refusal was not sent");
        }
        None
    }
}

/// One published message, and the node that published it as the subject says.
#[derive(Debug)]
pub struct Publication<M> {
    pub message: M,
    /// Empty where the subject names no node.
    pub node: NodeName,
}

/// The published messages of a subscription, for as long as the connection exists; it survives reconnections.
pub struct Publications<M> {
    subscriber: Subscriber,
    read: fn(NodeName, &[u8]) -> Result<M, InvalidMessage>,
}

impl<M> Publications<M> {
    pub(crate) async fn subscribe(
        bus: &Bus,
        subject: &str,
        read: fn(NodeName, &[u8]) -> Result<M, InvalidMessage>,
    ) -> Result<Self, SubscribeError> {
        let subscriber = bus.subscribe(subject.to_owned()).await?;
        Ok(Self { subscriber, read })
    }

    /// The next message that can be read. Cancel-safe. `None` when the connection is closed for good.
    pub async fn next(&mut self) -> Option<Publication<M>> {
        loop {
            let message = self.subscriber.next().await?;
            let node = sender_of(&message.subject);
            match (self.read)(node.clone(), &message.payload) {
                Ok(message) => return Some(Publication { message, node }),
                Err(error) => {
                    warn!(subject = %message.subject, error = %ErrorChain(&error), "Message cannot be read");
                }
            }
        }
    }
}

fn sender_of(subject: &Subject) -> NodeName {
    subjects::node_of(subject).unwrap_or_else(|| NodeName::new(""))
}

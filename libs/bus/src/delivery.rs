//! Messages that come in, and the answers that go back.
//!
//! Owns the reading of a subscription. A malformed message is logged and answered with what its kind of
//! question takes for that; it never ends a service.

use std::marker::PhantomData;

use async_nats::{Client, Subject, Subscriber};
use futures::StreamExt;
use model::ids::NodeName;
use tracing::warn;
use wire::{InvalidMessage, Message};

use crate::{request::TRACE_PARENT, subjects};

#[derive(Debug, thiserror::Error)]
#[error("failed to subscribe to {subject}")]
pub struct SubscribeError {
    pub subject: String,
    #[source]
    pub source: async_nats::SubscribeError,
}

#[derive(Debug, thiserror::Error)]
#[error("failed to publish on {subject}")]
pub struct PublishError {
    pub subject: String,
    #[source]
    pub source: async_nats::PublishError,
}

/// One message, who sent it as the subject says, and the way back.
#[derive(Debug)]
pub struct Delivery<M, A> {
    pub message: M,
    pub node: NodeName,
    pub traceparent: Option<String>,
    pub reply: Reply<A>,
}

/// The way back to one asker.
#[derive(Debug)]
pub struct Reply<A> {
    client: Client,
    to: Option<Subject>,
    answer: PhantomData<fn(A)>,
}

impl<A: Message> Reply<A> {
    /// Answers; a message that nobody waits on an answer of needs none.
    ///
    /// # Errors
    /// The connection is closed for good.
    pub async fn send(self, answer: A) -> Result<(), PublishError> {
        let Some(to) = self.to else { return Ok(()) };
        let subject = to.to_string();
        let published = self.client.publish(to, answer.encode().into()).await;
        published.map_err(|source| PublishError { subject, source })
    }
}

/// How the messages of a subscription are read.
pub(crate) struct Reader<M, A> {
    pub(crate) read: fn(NodeName, &[u8]) -> Result<M, InvalidMessage>,
    /// What a sender of something unreadable is told.
    pub(crate) refuse: fn(&InvalidMessage) -> Option<A>,
}

/// The messages of a subscription, for as long as the bus lives; it survives reconnections.
pub struct Deliveries<M, A> {
    client: Client,
    subscriber: Subscriber,
    reader: Reader<M, A>,
}

impl<M, A: Message> Deliveries<M, A> {
    pub(crate) async fn subscribe(
        client: &Client,
        subject: String,
        reader: Reader<M, A>,
    ) -> Result<Self, SubscribeError> {
        let subscriber = client
            .subscribe(subject.clone())
            .await
            .map_err(|source| SubscribeError { subject, source })?;
        Ok(Self {
            client: client.clone(),
            subscriber,
            reader,
        })
    }

    /// The next message. Cancel-safe. `None` when the connection is closed for good.
    pub async fn next(&mut self) -> Option<Delivery<M, A>> {
        loop {
            let message = self.subscriber.next().await?;
            let reply = Reply {
                client: self.client.clone(),
                to: message.reply.clone(),
                answer: PhantomData,
            };
            let node =
                subjects::node_of(&message.subject).unwrap_or_else(|| NodeName::new(String::new()));
            match (self.reader.read)(node.clone(), &message.payload) {
                Ok(content) => {
                    let headers = message.headers.as_ref();
                    let traceparent = headers.and_then(|headers| headers.get(TRACE_PARENT));
                    let traceparent = traceparent.map(ToString::to_string);
                    return Some(Delivery {
                        message: content,
                        node,
                        traceparent,
                        reply,
                    });
                }
                Err(error) => {
                    warn!(subject = %message.subject, %error, "Message cannot be read");
                    if let Some(answer) = (self.reader.refuse)(&error)
                        && let Err(error) = reply.send(answer).await
                    {
                        warn!(%error, "Refusal was not sent");
                    }
                }
            }
        }
    }
}

//! Asking and being answered, within a deadline.
//!
//! Owns what may come instead of an answer. It repeats nothing: whoever asks decides that.

use std::time::Duration;

use async_nats::{HeaderMap, Request, client::RequestErrorKind};
use wire::{InvalidMessage, Message};

use crate::Bus;

/// The header of the W3C trace context.
pub(crate) const TRACE_PARENT: &str = "traceparent";

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("nobody listens on {subject}")]
    NoResponders { subject: String },
    #[error("no answer on {subject} in time")]
    Timeout { subject: String },
    /// Nothing was sent: a request must not leave minutes later.
    #[error("not connected to the bus")]
    Disconnected,
    #[error("failed to ask on {subject}")]
    Failed {
        subject: String,
        #[source]
        source: async_nats::RequestError,
    },
    #[error("the answer on {subject} cannot be read")]
    Malformed {
        subject: String,
        #[source]
        source: InvalidMessage,
    },
}

impl Bus {
    /// Sends one message now or not at all, and waits for its one answer.
    ///
    /// The client would queue while it is away and send at its return, long after the asker gave up: hence the
    /// check. A connection that dies between check and sending may still do so; fences make that harmless.
    pub(crate) async fn ask<A: Message>(
        &self,
        subject: String,
        message: Vec<u8>,
        traceparent: Option<&str>,
        deadline: Duration,
    ) -> Result<A, RequestError> {
        if !self.is_connected() {
            return Err(RequestError::Disconnected);
        }
        let mut request = Request::new()
            .payload(message.into())
            .timeout(Some(deadline));
        if let Some(traceparent) = traceparent {
            let mut headers = HeaderMap::new();
            headers.insert(TRACE_PARENT, traceparent);
            request = request.headers(headers);
        }
        let answer = self.client.send_request(subject.clone(), request).await;
        let answer = answer.map_err(|source| {
            let subject = subject.clone();
            match source.kind() {
                RequestErrorKind::NoResponders => RequestError::NoResponders { subject },
                RequestErrorKind::TimedOut => RequestError::Timeout { subject },
                RequestErrorKind::InvalidSubject
                | RequestErrorKind::MaxPayloadExceeded
                | RequestErrorKind::Other => RequestError::Failed { subject, source },
            }
        })?;
        A::decode(&answer.payload).map_err(|source| RequestError::Malformed { subject, source })
    }
}

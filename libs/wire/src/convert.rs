//! Between the generated types and the model's, field by field.
//!
//! Owns what each field may be. Proto3 leaves every field out that has its default: an empty id is a missing one.

mod order;
mod presence;
mod started;

pub use presence::{decode_presence, encode_presence};

use std::time::Duration;

use model::order_id::InvalidOrderId;

/// Bytes that are not the message they should be.
#[derive(Debug, thiserror::Error)]
pub enum InvalidMessage {
    #[error("the bytes are no protobuf message of this kind")]
    Bytes(#[source] prost::DecodeError),
    #[error("field {field} is missing or of a kind that is not known here")]
    Missing { field: &'static str },
    #[error("field {field} is not an order id")]
    OrderId {
        field: &'static str,
        #[source]
        source: InvalidOrderId,
    },
    #[error("field {field} contradicts another field")]
    Contradiction { field: &'static str },
    #[error("field {field} is out of range: {value}")]
    OutOfRange { field: &'static str, value: u64 },
}

fn decode<M: prost::Message + Default>(bytes: &[u8]) -> Result<M, InvalidMessage> {
    M::decode(bytes).map_err(InvalidMessage::Bytes)
}

fn some<T>(field: &'static str, value: Option<T>) -> Result<T, InvalidMessage> {
    value.ok_or(InvalidMessage::Missing { field })
}

/// An id, which is never empty.
fn filled<T: for<'a> From<&'a str>>(field: &'static str, id: &str) -> Result<T, InvalidMessage> {
    some(field, (!id.is_empty()).then(|| id.into()))
}

fn not_empty(value: String) -> Option<String> {
    (!value.is_empty()).then_some(value)
}

/// Milliseconds as sent; longer than 584 million years is cut off.
fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

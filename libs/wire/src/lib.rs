//! The messages of the bus: model types to protobuf bytes and back.
//!
//! Owns the wire format (`proto/podwright/v1`). Unknown newer fields are harmless; an unknown kind of order,
//! answer or hook is an error that names the field. It sends nothing.

mod convert;

#[expect(unreachable_pub, reason = "generated")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/podwright.v1.rs"));
}

pub use convert::{InvalidMessage, decode_presence, encode_presence};

/// A model type that travels as protobuf bytes.
pub trait Message: Sized {
    fn encode(&self) -> Vec<u8>;

    /// # Errors
    /// The bytes are no such message, or a field of it is missing or unknown.
    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage>;
}

/// A leader has a report: the node need not repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportAck;

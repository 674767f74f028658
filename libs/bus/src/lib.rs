//! The only place that knows NATS.
//!
//! Owns subjects, connection, request/reply with a deadline, and deliveries. The bus may lose, repeat, delay
//! and reorder anything: whoever uses it repeats what matters. What the messages mean is `model`'s.

mod args;
mod connection;
mod delivery;
mod identity;
mod request;
pub mod subjects;
mod verbs;

pub use args::Args;
pub use connection::{Bus, ConnectError};
pub use delivery::{
    Deliveries, Delivery, Publication, Publications, PublishError, Reply, SubscribeError,
};
pub use identity::SecretError;
pub use request::RequestError;

//! The words that more than one crate needs: ids, labels, phases, orders and the CRR.
//!
//! Owns plain data and its parsing. It does no IO, reads no clock and knows no wire format:
//! `wire` and `k8s-api` turn bytes and objects into these types.

pub mod condition;
pub mod crr;
pub mod error_chain;
pub mod events;
pub mod ids;
pub mod instances;
pub mod labels;
pub mod launch;
pub mod order;
pub mod order_id;
pub mod phase;
pub mod pod;
pub mod presence;
pub mod retry;
pub mod time;
pub mod wakes;
pub mod watch;

//! The orders that a leader has given: when each is sent, and what is known of it.
//!
//! Owns the order book that every leader uses. What is ordered, and why, is decided by the leader's own rules crate;
//! what a node does with an order, by `node-rules`.

#![warn(clippy::wildcard_enum_match_arm)]

mod book;

pub use book::{ANSWER_WITHIN, KnownOrder, OrderBook, Progress, Silence};

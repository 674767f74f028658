//! Services' libraries against the real programs they talk to.
//!
//! Owns starting and ending those programs, and waiting for conditions. The tests are in `tests/`; they need
//! no cluster, only this machine.

mod nats_server;
mod wait;

pub use nats_server::{NatsServer, Release};
pub use wait::eventually;

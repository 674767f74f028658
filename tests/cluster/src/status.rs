//! The cluster's state for people.

use std::fmt;

use crate::{
    process::{Condition, Identity},
    state::{Phase, State},
};

/// Prints as a few lines.
#[derive(Debug)]
pub(crate) struct Status<'a>(&'a State);

impl<'a> Status<'a> {
    pub(crate) fn of(state: &'a State) -> Self {
        Self(state)
    }
}

impl fmt::Display for Status<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match self.0.phase {
            Phase::Starting => "half started",
            Phase::Ready => "up",
        };
        writeln!(f, "cluster of {} nodes, {phase}", self.0.nodes.len())?;
        for node in &self.0.nodes {
            let alive = self
                .0
                .keepers
                .get(&node.name())
                .is_some_and(Identity::alive);
            let word = if alive { "up" } else { "down" };
            writeln!(f, "  {:<36} {:<8} {}", node.name(), word, node.address())?;
        }
        for (name, daemon) in &self.0.daemons {
            let word = match daemon.condition() {
                Condition::Running => "running",
                Condition::Paused => "paused",
                Condition::Dead => "dead",
            };
            let pid = daemon
                .identity
                .map_or(String::new(), |identity| identity.pid.to_string());
            writeln!(f, "  {name:<36} {word:<8} {pid}")?;
        }
        Ok(())
    }
}

//! When each node was last heard of.
//!
//! Owns the leader's memory of presence messages; it is rebuilt within ten seconds after a change of leaders.

use std::collections::HashMap;

use model::{ids::NodeName, presence::LastSeen};
use tokio::time::Instant;

/// The last signs of life.
pub(crate) struct PresenceTable {
    listening_since: Instant,
    last_seen: HashMap<NodeName, Instant>,
}

impl PresenceTable {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            listening_since: now,
            last_seen: HashMap::new(),
        }
    }

    pub(crate) fn saw(&mut self, node: NodeName, now: Instant) {
        self.last_seen.insert(node, now);
    }

    pub(crate) fn last_seen(&self, node: &NodeName, now: Instant) -> LastSeen {
        match self.last_seen.get(node) {
            Some(seen) => LastSeen::Ago(now.duration_since(*seen)),
            None => LastSeen::NotFor(now.duration_since(self.listening_since)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.last_seen.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn knows_how_long_it_heard_nothing() {
        let start = Instant::now();
        let later = start + Duration::from_secs(7);
        let mut table = PresenceTable::new(start);
        let node = NodeName::new("node-1");
        assert_eq!(
            table.last_seen(&node, later),
            LastSeen::NotFor(Duration::from_secs(7))
        );
        table.saw(node.clone(), start + Duration::from_secs(5));
        assert_eq!(
            table.last_seen(&node, later),
            LastSeen::Ago(Duration::from_secs(2))
        );
    }
}

//! When each node was last heard of.
//!
//! Owns the leader's memory of presence messages; it is rebuilt within ten seconds after a change of leaders.

use std::{collections::HashMap, time::Duration};

use model::{ids::NodeName, presence::LastSeen};
use tokio::time::Instant;

/// A node that was not heard of for so long is forgotten: with autoscaling, names come and go for ever.
const KEPT_FOR: Duration = Duration::from_secs(3600);

/// The last signs of life.
pub(crate) struct PresenceTable {
    listening_since: Instant,
    last_seen: HashMap<NodeName, Instant>,
    /// When it was last gone through for nodes to forget.
    cleared_at: Instant,
}

impl PresenceTable {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            listening_since: now,
            last_seen: HashMap::new(),
            cleared_at: now,
        }
    }

    pub(crate) fn saw(&mut self, node: NodeName, now: Instant) {
        self.last_seen.insert(node, now);
        if now.duration_since(self.cleared_at) >= KEPT_FOR {
            self.cleared_at = now;
            self.last_seen
                .retain(|_, seen| now.duration_since(*seen) < KEPT_FOR);
        }
    }

    pub(crate) fn last_seen(&self, node: &NodeName, now: Instant) -> LastSeen {
        match self.last_seen.get(node) {
            Some(seen) => LastSeen::Ago(now.duration_since(*seen)),
            // It may have been forgotten: no more than that is known.
            None => LastSeen::NotFor(now.duration_since(self.listening_since).min(KEPT_FOR)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.last_seen.len()
    }
}

#[cfg(test)]
mod tests {
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

    #[tokio::test]
    async fn forgets_the_nodes_that_are_gone() {
        let start = Instant::now();
        let mut table = PresenceTable::new(start);
        // A node every minute that lives for a minute, and one that stays.
        let stays = NodeName::new("stays");
        for minute in 0..24 * 60 {
            let now = start + Duration::from_secs(60 * minute);
            table.saw(NodeName::new(format!("node-{minute}")), now);
            table.saw(stays.clone(), now);
            assert_eq!(table.last_seen(&stays, now), LastSeen::Ago(Duration::ZERO));
        }
        assert!(table.len() <= 122, "{}", table.len());
        let end = start + Duration::from_secs(24 * 3600);
        let gone = table.last_seen(&NodeName::new("node-0"), end);
        assert_eq!(gone, LastSeen::NotFor(KEPT_FOR));
    }
}

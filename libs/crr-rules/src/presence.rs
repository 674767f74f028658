//! When each node was last seen.
//!
//! Owns the leader's memory of presence messages; it is complete again ten seconds after a change of leaders.

use std::{collections::BTreeMap, time::Duration};

use model::{ids::NodeName, presence::LastSeen, time::Monotonic};

/// A node that was silent for this long is forgotten: with autoscaling, names come and go for ever.
const KEPT_FOR: Duration = Duration::from_secs(3600);

/// The last presence of each node.
#[derive(Clone, Debug, Default)]
pub(crate) struct PresenceTable {
    /// The first event of this leader.
    listening_since: Option<Monotonic>,
    last_seen: BTreeMap<NodeName, Monotonic>,
    /// When silent nodes were last removed.
    cleared_at: Monotonic,
}

// === impl PresenceTable ===

impl PresenceTable {
    /// Must be called with the leader's first event.
    pub(crate) fn listen(&mut self, now: Monotonic) {
        self.listening_since.get_or_insert(now);
    }

    pub(crate) fn saw(&mut self, node: NodeName, now: Monotonic) {
        self.last_seen.insert(node, now);
        if now - self.cleared_at >= KEPT_FOR {
            self.cleared_at = now;
            self.last_seen.retain(|_, seen| now - *seen < KEPT_FOR);
        }
    }

    pub(crate) fn last_seen(&self, node: &NodeName, now: Monotonic) -> LastSeen {
        match self.last_seen.get(node) {
            Some(seen) => LastSeen::Ago(now - *seen),
            // It may have been forgotten: no more than that is known.
            None => {
                let listening_for = now - self.listening_since.unwrap_or(now);
                LastSeen::NotFor(listening_for.min(KEPT_FOR))
            }
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.last_seen.len()
    }
}

#[cfg(test)]
mod tests {
    use testkit::monotonic;

    use super::*;

    fn seconds(seconds: u64) -> Monotonic {
        monotonic(seconds * 1000)
    }

    #[test]
    fn knows_for_how_long_a_node_was_silent() {
        let mut table = PresenceTable::default();
        table.listen(seconds(10));
        let node = NodeName::new("node-1");
        let last_seen = table.last_seen(&node, seconds(17));
        assert_eq!(last_seen, LastSeen::NotFor(Duration::from_secs(7)));
        table.saw(node.clone(), seconds(15));
        let last_seen = table.last_seen(&node, seconds(17));
        assert_eq!(last_seen, LastSeen::Ago(Duration::from_secs(2)));
    }

    #[test]
    fn forgets_nodes_that_are_gone() {
        let mut table = PresenceTable::default();
        table.listen(seconds(0));
        // A node every minute that lives for a minute, and one that stays.
        let stays = NodeName::new("stays");
        for minute in 0..24 * 60 {
            let now = seconds(60 * minute);
            table.saw(NodeName::new(format!("node-{minute}")), now);
            table.saw(stays.clone(), now);
            assert_eq!(table.last_seen(&stays, now), LastSeen::Ago(Duration::ZERO));
        }
        assert!(table.count() <= 122, "{}", table.count());
        let gone = table.last_seen(&NodeName::new("node-0"), seconds(24 * 3600));
        assert_eq!(gone, LastSeen::NotFor(KEPT_FOR));
    }
}

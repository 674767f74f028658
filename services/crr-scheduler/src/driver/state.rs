//! What the leader shows at `/state`.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::Driver;

/// How many CRRs are shown: it is written anew with every event.
const SHOWN: usize = 50;

impl Driver {
    pub(super) fn describe(&self) -> Value {
        let active = self.crrs.unended().take(SHOWN);
        let now = Instant::now();
        let crrs = active.filter_map(|key| self.crrs.get(key)).map(|tracked| {
            let wake_at = self.wakes.get(&tracked.crr.key);
            json!({
                "crr": tracked.crr.key.to_string(),
                "pod": tracked.crr.pod.to_string(),
                "node": tracked.crr.node.as_ref().map(ToString::to_string),
                "phase": tracked.crr.status.phase,
                "isWriting": tracked.is_writing,
                "wakeInSeconds": wake_at.map(|at| at.duration_since(now).as_secs()),
            })
        });
        json!({
            "leads": true,
            "busIsConnected": self.bus.is_connected(),
            "active": self.crrs.unended().len(),
            "someActive": crrs.collect::<Vec<_>>(),
            "podsWatched": self.pods.len(),
            "ordersKnown": self.book.len(),
            "nodesSeen": self.presence.len(),
        })
    }
}

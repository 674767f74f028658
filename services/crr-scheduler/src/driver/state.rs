//! What the leader shows at `/state`.

use serde_json::{Value, json};

use super::Driver;

impl Driver {
    pub(super) fn describe(&self) -> Value {
        let active = self.tracked.values().filter(|tracked| tracked.is_active());
        let crrs = active.map(|tracked| {
            json!({
                "crr": tracked.crr.key.to_string(),
                "pod": tracked.crr.pod.to_string(),
                "node": tracked.crr.node.as_ref().map(ToString::to_string),
                "phase": tracked.crr.status.phase,
                "isWriting": tracked.is_writing,
                "wakeAt": tracked.wake_at.map(|moment| moment.to_string()),
            })
        });
        json!({
            "leads": true,
            "busIsConnected": self.bus.is_connected(),
            "active": crrs.collect::<Vec<_>>(),
            "watchedPods": self.pods.keys().map(ToString::to_string).collect::<Vec<_>>(),
            "ordersKnown": self.book.len(),
            "nodesSeen": self.presence.len(),
        })
    }
}

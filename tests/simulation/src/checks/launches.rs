//! Checks of launches: no level opens early.

use std::collections::BTreeSet;

use model::{
    ids::{ContainerName, PodKey, PodUid},
    launch::{BarrierMap, Priority},
};

use super::{Ledger, Violation};
use crate::World;

// === impl Ledger ===

impl Ledger {
    /// A container is up, or has ended for good.
    pub(crate) fn on_up(&mut self, pod: &PodUid, container: &ContainerName) {
        self.been_up.insert((pod.clone(), container.clone()));
    }

    fn has_been_up(&self, pod: &PodUid, container: &ContainerName) -> bool {
        let key = (pod.clone(), container.clone());
        self.been_up.contains(&key) || self.ready_shown.contains_key(&key)
    }
}

// === impl World ===

impl World {
    /// Keys were added to the ConfigMap of a pod.
    pub(crate) fn check_keys(
        &mut self,
        key: &PodKey,
        writer: &PodUid,
        keys: &BTreeSet<Priority>,
        map: &BarrierMap,
    ) {
        if !keys.is_empty() && !map.owners.contains(writer) {
            self.fail(Violation::KeyInForeignMap(map.uid.clone()));
            return;
        }
        let Some(sandbox) = self.sandboxes.get(writer) else {
            return;
        };
        let is_up = |name: &ContainerName, policy| {
            let of_name = sandbox.containers.iter().find(|it| it.plan.name == *name);
            let newest = of_name.and_then(|container| container.newest.as_ref());
            let ended = newest.and_then(|newest| newest.ended);
            self.ledger.has_been_up(writer, name)
                || ended.is_some_and(|(_, code)| crate::world::stays_ended(policy, code))
        };
        let lowest = keys.iter().min().copied();
        let early = sandbox.containers.iter().any(|container| {
            let plan = &container.plan;
            let is_higher = plan.priority > lowest && lowest.is_some();
            is_higher && !is_up(&plan.name, plan.restart_policy)
        });
        if let Some(level) = lowest.filter(|_| early) {
            self.trace(|_| format!("too early for {key}"));
            self.fail(Violation::LevelTooEarly(writer.clone(), level));
        }
    }
}

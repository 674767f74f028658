//! Removals of dead instances, so that a kubelet that finds none applies no back-off.
//!
//! Owns the removals under way and the choice of instances. Removals are neither journaled nor reported, and forgotten when
//! answered: a removal may be repeated, and a crash in the middle leaves the fence as it was.
//!
//! A removal is judged by the stops that are unfinished when the runtime's list arrives, because the outcome of a stop cut
//! off by a crash is judged by its instance. A stop that is accepted after that, while the removal goes on, is safe: the
//! instances to remove had all exited when they were listed, and a stop is accepted only of a living instance. If its
//! inspection was older than the list, the instance has ended on its own since, and the stop ends as `Outcome::Gone`.

use std::collections::{BTreeMap, VecDeque};

use model::{
    ids::ContainerId,
    instances::{InstanceState, ListedInstance},
    order::{Answer, Instance, Outcome, Refusal},
    order_id::OrderId,
};

use crate::{
    admission::{check_instance, unavailable},
    effect::{Action, Effects},
    event::ReplyToken,
};

/// All removals that are not answered yet.
#[derive(Clone, Debug)]
pub(crate) struct Removals {
    /// Maximum number of removals under way; 0 counts as 1.
    max_concurrent: usize,
    removals: BTreeMap<OrderId, Removal>,
    /// Removals that are not under way, oldest first.
    queue: VecDeque<OrderId>,
}

#[derive(Clone, Debug)]
struct Removal {
    instance: Instance,
    replies: Vec<ReplyToken>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for others to end.
    Queued,
    /// The runtime was asked for the container's instances.
    Listing,
    /// The runtime was asked to remove the dead instances.
    Removing,
}

// === impl Removals ===

impl Removals {
    pub(crate) fn new(max_concurrent: usize) -> Self {
        Self {
            max_concurrent,
            removals: BTreeMap::new(),
            queue: VecDeque::new(),
        }
    }

    /// The instance that a removal names.
    pub(crate) fn instance(&self, order: &OrderId) -> Option<&Instance> {
        Some(&self.removals.get(order)?.instance)
    }

    /// Queues a removal. The same removal again, while it is under way, only adds a requester.
    pub(crate) fn on_ordered(
        &mut self,
        order: OrderId,
        instance: Instance,
        reply: ReplyToken,
        effects: &mut Effects,
    ) {
        if let Some(known) = self.removals.get_mut(&order) {
            if known.instance.container_id == instance.container_id {
                known.replies.push(reply);
            } else {
                // Its result says nothing about the instance named here.
                let refusal = unavailable("the removal for another instance has not ended");
                effects.refuse(vec![reply], refusal);
            }
        } else if let Some(refusal) = check_instance(&instance) {
            effects.refuse(vec![reply], refusal);
        } else {
            let removal = Removal {
                instance,
                replies: vec![reply],
                state: State::Queued,
            };
            self.queue.push_back(order.clone());
            self.removals.insert(order, removal);
            self.begin_queued(effects);
        }
    }

    /// Removes the listed dead instances if the fence holds. `unfinished_stop`: a stop of the container, if there is one.
    pub(crate) fn on_listed(
        &mut self,
        order: &OrderId,
        listed: Result<Vec<ListedInstance>, String>,
        unfinished_stop: Option<OrderId>,
        effects: &mut Effects,
    ) {
        let Some(removal) = self.in_state(order, State::Listing) else {
            return;
        };
        let judged = listed
            .map_err(|message| Refusal::RuntimeUnavailable { message })
            .and_then(|listed| judge_removal(&removal.instance, unfinished_stop, listed));
        match judged {
            // Listing => answered
            Err(refusal) => self.end(order, Answer::Refused(refusal), effects),
            // Listing => answered: an earlier sending of this order has removed them.
            Ok(container_ids) if container_ids.is_empty() => self.end(order, done(0), effects),
            Ok(container_ids) => {
                // Listing => Removing
                removal.state = State::Removing;
                effects.actions.push(Action::RemoveInstances {
                    order: order.clone(),
                    instance: removal.instance.clone(),
                    container_ids,
                });
            }
        }
    }

    pub(crate) fn on_ended(
        &mut self,
        order: &OrderId,
        result: Result<u32, String>,
        effects: &mut Effects,
    ) {
        if self.in_state(order, State::Removing).is_some() {
            let refused = |message| Answer::Refused(Refusal::RuntimeUnavailable { message });
            // Removing => answered
            self.end(order, result.map_or_else(refused, done), effects);
        }
    }

    /// Refuses the removals that have not begun; those under way go on.
    pub(crate) fn on_drain_begun(&mut self, effects: &mut Effects) {
        for order in std::mem::take(&mut self.queue) {
            // Queued => answered
            if let Some(removal) = self.removals.remove(&order) {
                effects.refuse(removal.replies, shutting_down());
            }
        }
    }

    fn in_state(&mut self, order: &OrderId, state: State) -> Option<&mut Removal> {
        let removal = self.removals.get_mut(order);
        removal.filter(|removal| removal.state == state)
    }

    fn begin_queued(&mut self, effects: &mut Effects) {
        while self.removals.len() - self.queue.len() < self.max_concurrent.max(1)
            && let Some(order) = self.queue.pop_front()
            && let Some(removal) = self.removals.get_mut(&order)
        {
            // Queued => Listing
            removal.state = State::Listing;
            let instance = removal.instance.clone();
            let list = Action::ListInstances { order, instance };
            effects.actions.push(list);
        }
    }

    fn end(&mut self, order: &OrderId, answer: Answer, effects: &mut Effects) {
        if let Some(removal) = self.removals.remove(order) {
            effects.answer(removal.replies, &answer);
        }
        self.begin_queued(effects);
    }
}

/// The refusal of a removal that may not begin because the process ends.
pub(crate) fn shutting_down() -> Refusal {
    unavailable("the node-executor is shutting down")
}

fn done(count: u32) -> Answer {
    Answer::Done {
        container_id: None,
        outcome: Outcome::Removed { count },
    }
}

/// The instances to remove, in this order: the newest last, so that it fences a repetition.
fn judge_removal(
    named: &Instance,
    unfinished_stop: Option<OrderId>,
    mut listed: Vec<ListedInstance>,
) -> Result<Vec<ContainerId>, Refusal> {
    listed.sort_by_key(|instance| (instance.restart_count, instance.created_at));
    let Some(newest) = listed.last() else {
        return Ok(Vec::new());
    };
    if newest.container_id != named.container_id {
        return Err(Refusal::OtherInstance {
            container_id: newest.container_id.clone(),
            restart_count: newest.restart_count,
        });
    }
    if let Some(order) = unfinished_stop {
        return Err(Refusal::StopUnfinished { order });
    }
    if newest.state == InstanceState::Alive {
        return Err(Refusal::StillRunning);
    }
    listed.retain(|instance| instance.state == InstanceState::Exited);
    let dead = listed.into_iter();
    Ok(dead.map(|instance| instance.container_id).collect())
}

#[cfg(test)]
mod tests {
    use super::{
        InstanceState::{Alive, Exited},
        *,
    };

    fn listed(container_id: &str, restart_count: u32, state: InstanceState) -> ListedInstance {
        ListedInstance {
            container_id: container_id.into(),
            restart_count,
            created_at: i64::from(restart_count),
            state,
        }
    }

    fn check(
        unfinished_stop: Option<OrderId>,
        listed: Vec<ListedInstance>,
        expected: Result<&[&str], Refusal>,
    ) {
        let named = testkit::instance("app", "c");
        let expected = expected.map(|ids| ids.iter().map(|id| ContainerId::new(*id)).collect());
        assert_eq!(judge_removal(&named, unfinished_stop, listed), expected);
    }

    #[test]
    fn all_dead_instances_are_removed_and_the_newest_last() {
        let all = vec![
            listed("c", 2, Exited),
            listed("a", 0, Exited),
            listed("b", 1, Exited),
        ];
        check(None, all, Ok(&["a", "b", "c"]));
        check(None, Vec::new(), Ok(&[]));
    }

    #[test]
    fn an_older_instance_that_lives_stays() {
        let all = vec![listed("b", 1, Alive), listed("c", 2, Exited)];
        check(None, all, Ok(&["c"]));
    }

    #[test]
    fn only_the_named_dead_newest_instance_allows_it() {
        let alive = vec![listed("c", 2, Alive)];
        check(None, alive, Err(Refusal::StillRunning));
        let other = Refusal::OtherInstance {
            container_id: "d".into(),
            restart_count: 3,
        };
        let newer = vec![listed("c", 2, Exited), listed("d", 3, Alive)];
        check(None, newer, Err(other));
    }

    #[test]
    fn an_unfinished_stop_forbids_it_if_there_is_something_to_remove() {
        let stop = Some(testkit::stop_id("app"));
        let unfinished = Refusal::StopUnfinished {
            order: testkit::stop_id("app"),
        };
        let dead = vec![listed("c", 2, Exited)];
        check(stop.clone(), dead, Err(unfinished));
        check(stop, Vec::new(), Ok(&[]));
    }
}

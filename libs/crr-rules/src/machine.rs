//! The leader's machine: its memory, and what each event changes in it.
//!
//! Owns turns among the CRRs of a pod, object versions, writes under way, conflicts and retries. What a CRR needs now is
//! [`crate::plan`]'s decision; how a plan becomes effects is in `machine/advance.rs`.

mod advance;
mod state;

use std::collections::{BTreeMap, BTreeSet};

use model::{
    crr::Crr,
    ids::{CrrKey, CrrUid, NodeName, PodKey},
    order::{Answer, Report},
    order_id::OrderId,
    presence::{PresenceAnswer, PresenceQuestion},
    retry::API_WRITE,
    time::{Monotonic, Now},
    wakes::WakeSet,
    watch::{Unlisted, Version},
};
use order_rules::{OrderBook, Silence};

pub use self::state::{ActiveCrr, State};
use crate::{
    effect::Effect,
    entry::{CrrEntry, Request, Target},
    event::{Event, ReplyToken, WriteResult},
    index::CrrIndex,
    presence::PresenceTable,
    snapshot::PodView,
};

/// Decides everything that the leading crr-scheduler does. A new leader starts with an empty machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    crrs: CrrIndex,
    /// False until the first list is complete: before, the turn of a CRR is unknown.
    is_listed: bool,
    unlisted: Unlisted<CrrKey>,
    /// The watched pods.
    pods: BTreeMap<PodKey, PodView>,
    book: OrderBook,
    presence: PresenceTable,
    /// When to plan again for which CRR.
    wakes: WakeSet<CrrKey>,
    /// What the present event leads to.
    effects: Vec<Effect>,
}

/// The CRRs that an event may concern.
type Touched = BTreeSet<CrrKey>;

// === impl Machine ===

impl Machine {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what happened and returns what to do.
    pub fn on_event(&mut self, event: Event, now: Now) -> Vec<Effect> {
        self.presence.listen(now.monotonic);
        for crr in self.take(event, now) {
            self.advance(&crr, now);
        }
        std::mem::take(&mut self.effects)
    }

    /// When to send `Event::Tick`; `None` while only other events matter.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        self.wakes.next()
    }

    /// Records an event and returns the CRRs that it may concern.
    fn take(&mut self, event: Event, now: Now) -> Touched {
        match event {
            Event::CrrListBegun => {
                self.unlisted.begin(self.crrs.keys());
                Touched::new()
            }
            Event::CrrSeen(crr) => self.on_seen(*crr),
            Event::CrrUnreadable(crr) => {
                self.unlisted.saw(&crr);
                Touched::new()
            }
            Event::CrrGone(crr) => self.on_gone(&crr),
            Event::CrrListEnded => self.on_list_ended(),
            Event::PodSeen { pod, view } => self.on_pod(&pod, view),
            Event::Written { crr, uid, result } => self.on_written(crr, &uid, result, now),
            Event::Nudged { crr, uid, is_done } => self.on_nudged(crr, &uid, is_done, now),
            Event::Answered { order, result } => self.on_answered(&order, result, now),
            Event::Reported {
                report,
                node,
                reply,
            } => self.on_report(&report, &node, reply, now),
            Event::PresenceSeen(node) => {
                self.presence.saw(node, now.monotonic);
                Touched::new()
            }
            Event::PresenceAsked { question, reply } => {
                let answer = self.presence_answer(&question, now);
                self.effects.push(Effect::AnswerPresence { reply, answer });
                Touched::new()
            }
            Event::Tick => self.wakes.take_due(now.monotonic),
        }
    }

    /// A CRR as the watch shows it.
    fn on_seen(&mut self, crr: Crr) -> Touched {
        let (key, version) = (crr.key.clone(), crr.version.clone());
        let touched = self.on_object(crr);
        if let Some(entry) = self.crrs.get_mut(&key) {
            entry.record_watched(&version);
        }
        touched
    }

    /// A CRR as the API server shows it. Concerns every CRR of its pod: the end of one is the turn of another.
    fn on_object(&mut self, crr: Crr) -> Touched {
        let (key, pod) = (crr.key.clone(), crr.pod.clone());
        self.unlisted.saw(&key);
        let known = self.crrs.get(&key);
        let mut touched = if known.is_some_and(|known| known.crr.uid != crr.uid) {
            self.on_gone(&key) // Deleted and created again between two lists.
        } else {
            Touched::new()
        };
        let is_new = self.crrs.get(&key).is_none();
        let has_ended = self.crrs.upsert(crr);
        if let Some(entry) = self.crrs.get(&key) {
            let crr = || Box::new(entry.crr.clone());
            if is_new && !entry.is_ended() {
                self.effects.push(Effect::Began(crr()));
            }
            if has_ended {
                self.effects.push(Effect::Ended {
                    crr: crr(),
                    is_completed: true,
                });
            }
        }
        touched.extend(self.crrs.keys_of(&pod));
        touched
    }

    fn on_gone(&mut self, crr: &CrrKey) -> Touched {
        let Some(entry) = self.forget(crr) else {
            return Touched::new();
        };
        let pod = entry.crr.pod.clone();
        if !entry.is_ended() {
            self.effects.push(Effect::Ended {
                crr: Box::new(entry.crr),
                is_completed: false,
            });
        }
        self.unwatch_unneeded(&pod);
        self.crrs.keys_of(&pod)
    }

    fn on_list_ended(&mut self) -> Touched {
        let gone = self.unlisted.end();
        let touched = gone.iter().flat_map(|crr| self.on_gone(crr)).collect();
        if std::mem::replace(&mut self.is_listed, true) {
            touched
        } else {
            self.crrs.keys()
        }
    }

    fn on_pod(&mut self, pod: &PodKey, view: PodView) -> Touched {
        let Some(known) = self.pods.get_mut(pod) else {
            return Touched::new();
        };
        if is_older(&view, known) {
            return Touched::new(); // The answer to our own write came first.
        }
        *known = view;
        self.crrs.keys_of(pod)
    }

    fn on_written(&mut self, key: CrrKey, uid: &CrrUid, result: WriteResult, now: Now) -> Touched {
        let Some(entry) = self.entry_as(&key, uid) else {
            return Touched::new();
        };
        // UnderWay => Idle
        let request = std::mem::replace(&mut entry.request, Request::Idle);
        let Request::UnderWay { target, version } = request else {
            entry.request = request;
            return Touched::new();
        };
        match (target, result) {
            (Target::Status | Target::Object, WriteResult::Crr(object)) => {
                entry.failures = 0;
                if target == Target::Status {
                    entry.status_written_at = Some(now.monotonic);
                }
                let mut touched = object.map_or_else(Touched::new, |crr| self.on_object(*crr));
                touched.insert(key);
                touched
            }
            (Target::Gate, WriteResult::Gate(view)) => self.on_gate_written(key, view),
            (Target::Gate, WriteResult::Gone) => self.on_gate_written(key, Some(PodView::Gone)),
            (Target::Status | Target::Object, WriteResult::Gone) => self.on_gone(&key),
            (Target::Status | Target::Object, WriteResult::Conflict) => {
                // The object that it met may have been seen before its answer came.
                if entry.crr.version == version {
                    entry.request = Request::Outdated; // UnderWay => Outdated
                }
                Touched::from([key])
            }
            // A newer pod is on its way; the pause is for the case that it came before this answer.
            (Target::Gate, WriteResult::Conflict) | (_, WriteResult::Failed) => {
                self.retry_later(&key, now)
            }
            (_, WriteResult::Deleted | WriteResult::Crr(_) | WriteResult::Gate(_)) => {
                Touched::new()
            }
        }
    }

    /// What the answer to a gate's write shows counts unless the pod that was written is gone or replaced by now.
    fn on_gate_written(&mut self, key: CrrKey, view: Option<PodView>) -> Touched {
        let Some(entry) = self.crrs.get_mut(&key) else {
            return Touched::new();
        };
        entry.failures = 0;
        let (pod, pod_uid) = (entry.crr.pod.clone(), entry.crr.pod_uid.clone());
        let is_outdated = self.pods.get(&pod).is_some_and(|known| match known {
            PodView::Unknown => false,
            PodView::Gone => true,
            PodView::Present(known) => Some(&known.uid) != pod_uid.as_ref(),
        });
        let view = view.filter(|_| !is_outdated);
        let mut touched = view.map_or_else(Touched::new, |view| self.on_pod(&pod, view));
        // Its plan waited for this answer, also if a newer pod was seen before.
        touched.insert(key);
        touched
    }

    fn retry_later(&mut self, key: &CrrKey, now: Now) -> Touched {
        if let Some(entry) = self.crrs.get_mut(key) {
            let retry_at = now.monotonic + API_WRITE.pause(entry.failures);
            entry.failures = entry.failures.saturating_add(1);
            self.wakes.set(key, Some(retry_at));
        }
        Touched::new()
    }

    fn on_nudged(&mut self, key: CrrKey, uid: &CrrUid, is_done: bool, now: Now) -> Touched {
        let Some(entry) = self.entry_as(&key, uid) else {
            return Touched::new();
        };
        if is_done {
            return Touched::from([key]);
        }
        entry.nudged_at = None;
        let retry_at = now.monotonic + API_WRITE.pause(0);
        self.wakes.set(&key, Some(retry_at));
        Touched::new()
    }

    fn on_answered(
        &mut self,
        order: &OrderId,
        result: Result<Answer, Silence>,
        now: Now,
    ) -> Touched {
        match result {
            Ok(answer) => self.book.on_answer(order, answer, now.monotonic),
            Err(silence) => self.book.on_silence(order, silence, now),
        }
        self.owner_of(order)
    }

    /// A report counts only from the node of its CRR; one of an unknown CRR changes nothing. It is acknowledged before anything is written: a later leader asks
    /// the node again, which answers from its journal.
    fn on_report(
        &mut self,
        report: &Report,
        node: &NodeName,
        reply: ReplyToken,
        now: Now,
    ) -> Touched {
        let owner = self.crrs.owner(&report.order);
        if owner.is_some_and(|entry| entry.crr.node.as_ref() != Some(node)) {
            self.effects.push(Effect::Ignore(reply));
            return Touched::new();
        }
        self.book.on_report(report, now.monotonic);
        self.effects.push(Effect::Acknowledge(reply));
        self.owner_of(&report.order)
    }

    fn presence_answer(&self, question: &PresenceQuestion, now: Now) -> PresenceAnswer {
        let of_pod = question.pod.iter().flat_map(|pod| self.crrs.of_pod(pod));
        let mut active: Vec<_> = of_pod
            .filter(|entry| entry.is_active())
            .map(|entry| (entry.crr.created_at, entry.crr.key.name.clone()))
            .collect();
        active.sort();
        PresenceAnswer {
            last_seen: self.presence.last_seen(&question.node, now.monotonic),
            active_crrs: active.into_iter().map(|(_, name)| name).collect(),
        }
    }

    /// The CRR for which an order is given.
    fn owner_of(&self, order: &OrderId) -> Touched {
        let owner = self.crrs.owner(order);
        owner
            .map(|entry| entry.crr.key.clone())
            .into_iter()
            .collect()
    }

    /// A CRR by name, unless it is another one of that name by now.
    fn entry_as(&mut self, crr: &CrrKey, uid: &CrrUid) -> Option<&mut CrrEntry> {
        let entry = self.crrs.get_mut(crr)?;
        (entry.crr.uid == *uid).then_some(entry)
    }
}

/// True for an older view than the known one, of the pod or of an earlier pod of its name.
fn is_older(view: &PodView, known: &PodView) -> bool {
    match (view, known) {
        (PodView::Present(view), PodView::Present(known)) => {
            Version::parse(&view.version) < Version::parse(&known.version)
        }
        (PodView::Unknown | PodView::Gone, _) | (_, PodView::Unknown | PodView::Gone) => false,
    }
}

#[cfg(test)]
mod tests;

//! What must hold in every history, and what has to be remembered to see it.
//!
//! Owns the violations and the ledger of what really happened. The checks of requests, stops and launches are below.

mod end;
mod launches;
mod requests;
mod stops;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use model::{
    crr::Crr,
    ids::{ContainerId, ContainerName, CrrUid, PodUid},
    launch::Priority,
    order_id::OrderId,
};

use crate::Process;

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A request has not ended though all faults did.
    NeverEnded(CrrUid),
    /// Two instances were stopped for one container of a request.
    StoppedTwice(OrderId),
    /// An instance was stopped that the request does not mean.
    ForeignStop(OrderId, ContainerId),
    /// An instance was stopped that came back for this very request.
    SuccessorStopped(OrderId, ContainerId),
    /// Hook or stop began more than 10 s after the request ended or was deleted.
    LateStop(OrderId, Duration),
    /// Like `LateStop`, of an order whose beginning was journaled in time.
    LateResume(OrderId, Duration),
    /// An instance was stopped without its hook.
    HookSkipped(OrderId),
    /// Hook or stop began before the pod had been NotReady for the grace that was asked for.
    DrainCutShort(OrderId),
    /// Succeeded without a newer instance that pod status showed running and ready.
    FalseSuccess(CrrUid, ContainerName),
    /// The status claims that the request stopped the instance.
    FalseKill(CrrUid, ContainerName),
    /// "Pod has gone", and it is there.
    FalsePodGone(CrrUid),
    /// Ended by its deadline before that passed, or deleted before its time to live.
    TooEarly(CrrUid),
    /// Ended by a silent node, and the node was asked only a few times.
    HastySilence(CrrUid),
    /// Deleted or closed by the scheduler before it ended.
    WrongObject(CrrUid),
    /// A hook ran though its end was journaled.
    HookRanAgain(OrderId),
    /// An order was answered before it was journaled.
    AnsweredUnjournaled(OrderId),
    /// An order left before its request's status said so.
    OrderBeforeStatus(OrderId),
    /// An order was forgotten while its request had not ended.
    ForgottenTooEarly(OrderId),
    /// The entry of another agent in a gate was lost.
    OtherHolderLost(PodUid),
    GateShut(PodUid),
    /// Our finalizer or the label `active` is left on an ended request.
    MarkLeft(CrrUid),
    /// A key was written while a higher level was not up.
    LevelTooEarly(PodUid, Priority),
    /// Keys were written to the ConfigMap of another pod.
    KeyInForeignMap(String),
    LaunchIncomplete(PodUid),
    /// The process remembers something for ever.
    NotForgotten(Process),
    /// The machine asks to be woken at once, for ever.
    HotLoop(Process),
}

// === impl Violation ===

impl Violation {
    /// The rule's name.
    pub fn name(&self) -> String {
        let text = format!("{self:?}");
        let name = text.split('(').next();
        name.unwrap_or_default().to_owned()
    }
}

/// What really happened, as far as the checks need it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) violation: Option<Violation>,
    pub(crate) crash_points: BTreeMap<Process, u64>,
    /// Every request as it was created.
    pub(crate) requests: BTreeMap<CrrUid, Crr>,
    /// When each request ended or was deleted.
    over: BTreeMap<CrrUid, Duration>,
    /// Orders of which a hook or a stop has begun.
    begun: BTreeSet<OrderId>,
    /// When each order's journal first said that its stop may have been sent.
    journaled_begin: BTreeMap<OrderId, Duration>,
    /// Orders whose hook was begun.
    hooks_begun: BTreeSet<OrderId>,
    /// Instances that ended by an order.
    ended_by: BTreeMap<OrderId, ContainerId>,
    /// Instances that the runtime was stopping.
    stopped: BTreeMap<OrderId, BTreeSet<ContainerId>>,
    hooks_ended: BTreeSet<OrderId>,
    /// When a request's container was first written to be `Recreating`.
    recreating: BTreeMap<(CrrUid, ContainerName), Duration>,
    /// Since when the gate has been shut for a request.
    drained_since: BTreeMap<CrrUid, Duration>,
    other_holders: BTreeMap<PodUid, bool>,
    /// Restart count and start of every instance.
    instances: BTreeMap<ContainerId, (u32, Duration)>,
    /// Start of the instances, by restart count, that pod status showed running and ready.
    ready_shown: BTreeMap<(PodUid, ContainerName), BTreeMap<u32, Duration>>,
    /// Containers that were up once, or ended for good.
    been_up: BTreeSet<(PodUid, ContainerName)>,
    /// How often an order of each request was sent.
    pub(crate) sent: BTreeMap<CrrUid, u32>,
}

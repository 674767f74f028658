//! Everything that can happen to the leading crr-scheduler.
//!
//! Owns the machine's input. Answers and reports about objects that are not known, or that nothing waits for, change nothing.

use model::{
    crr::Crr,
    ids::{CrrKey, CrrUid, NodeName, PodKey},
    order::{Answer, Report},
    order_id::OrderId,
    presence::PresenceQuestion,
};
use order_rules::Silence;

use crate::snapshot::PodView;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The watch of CRRs lists, at first or again.
    CrrListBegun,
    /// The watch shows a CRR, listed or changed.
    CrrSeen(Box<Crr>),
    /// The watch shows a CRR whose fields do not decode: what was known of it stays.
    CrrUnreadable(CrrKey),
    /// The watch shows that a CRR was deleted.
    CrrGone(CrrKey),
    /// The list is complete.
    CrrListEnded,
    /// The watch of a pod shows it: the answer to `Effect::WatchPod`, and every change.
    PodSeen { pod: PodKey, view: PodView },
    /// The API server answered a write, or did not: the answer to `Effect::Write`.
    Written {
        crr: CrrKey,
        uid: CrrUid,
        result: WriteResult,
    },
    /// The answer to `Effect::Nudge`.
    Nudged {
        crr: CrrKey,
        uid: CrrUid,
        is_done: bool,
    },
    /// A node answered one sending of an order, or did not: the answer to `Effect::Send`.
    Answered {
        order: OrderId,
        result: Result<Answer, Silence>,
    },
    /// A node reports the end of an order. `node` is the sender's identity, from the subject.
    Reported {
        report: Box<Report>,
        node: NodeName,
        reply: ReplyToken,
    },
    /// A node published its presence.
    PresenceSeen(NodeName),
    /// Admission asks about a node and a pod.
    PresenceAsked {
        question: PresenceQuestion,
        reply: ReplyToken,
    },
    /// The moment that `Machine::next_deadline` named has come.
    Tick,
}

/// Names one message that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplyToken(pub u64);

/// The result of a write to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteResult {
    /// A CRR was written; `None` if the returned object does not decode.
    Crr(Option<Box<Crr>>),
    /// A pod's readiness gate was written; `None` if the returned object does not decode.
    Gate(Option<PodView>),
    /// The CRR was deleted; its watch will show it.
    Deleted,
    /// A newer object is there than the one that the write was decided on.
    Conflict,
    /// The object does not exist.
    Gone,
    /// Any other failure: a retry may succeed.
    Failed,
}

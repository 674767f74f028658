//! Everything that the leading crr-scheduler may have to do.
//!
//! Owns the machine's output. Each effect is idempotent or guarded by uid and resourceVersion: carrying one out twice, or
//! long after it was decided, does no harm.

use model::{
    crr::Crr,
    ids::{CrrKey, CrrUid, NodeName, PodKey, PodUid},
    order::Sending,
    presence::PresenceAnswer,
};

use crate::{event::ReplyToken, kubernetes_events::CrrEvent, write::Write};

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Write to the API server, for the CRR as it was when this was decided; `Event::Written` answers. At most one write
    /// of a CRR is under way.
    Write { crr: Box<Crr>, write: Box<Write> },
    /// Send an order to a node; `Event::Answered` answers, after `order_rules::ANSWER_WITHIN` at the latest.
    Send {
        crr: CrrUid,
        node: NodeName,
        sending: Box<Sending>,
    },
    /// Write an annotation on the pod so that the kubelet syncs it now; `Event::Nudged` answers.
    Nudge {
        crr: CrrKey,
        uid: CrrUid,
        pod: PodKey,
        pod_uid: PodUid,
    },
    /// Publish a Kubernetes event. It may be given up: the status is the truth.
    Publish { crr: Box<Crr>, event: CrrEvent },
    /// Watch one pod; `Event::PodSeen` follows.
    WatchPod(PodKey),
    /// End the watch of a pod.
    UnwatchPod(PodKey),
    /// Acknowledge a report: its node need not repeat it.
    Acknowledge(ReplyToken),
    /// Leave a report without an answer.
    Ignore(ReplyToken),
    /// Answer a presence question.
    AnswerPresence {
        reply: ReplyToken,
        answer: PresenceAnswer,
    },
    /// A CRR that has not ended is known from now on: its trace begins.
    Began(Box<Crr>),
    /// A CRR that had begun is over: its trace ends.
    Ended {
        crr: Box<Crr>,
        /// True if its end is stored; false if it was deleted before.
        is_completed: bool,
    },
}

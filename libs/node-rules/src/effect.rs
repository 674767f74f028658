//! The machine's output.
//!
//! Owns the order in which effects leave: store, then answer, then act.

use std::time::Duration;

use model::{
    ids::ContainerId,
    order::{Answer, Instance, PreStop, Refusal, Report},
    order_id::OrderId,
};

use crate::{event::ReplyToken, record::Record};

/// Everything that one event leads to. The fields are carried out from top to bottom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// To be made durable, in this order, before anything below leaves; if that fails, the process ends.
    pub store: Vec<Record>,
    /// Orders whose records are deleted. Nothing depends on when.
    pub forget: Vec<OrderId>,
    /// Answers to requesters.
    pub answers: Vec<(ReplyToken, Answer)>,
    /// Work to begin. Each ends with one event.
    pub actions: Vec<Action>,
}

/// Work outside the machine. Each action is idempotent: a repetition does no harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the runtime for the newest instance of the container. Ends with `Event::Inspected`.
    Inspect { order: OrderId, instance: Instance },
    /// Run the hook. Ends with `Event::HookEnded`.
    RunHook {
        order: OrderId,
        instance: Instance,
        hook: PreStop,
        /// Time after which the hook is cut off.
        limit: Duration,
    },
    /// Stop exactly this instance. Ends with `Event::StopEnded`.
    Stop {
        order: OrderId,
        container_id: ContainerId,
        /// How long the runtime waits before it kills.
        timeout: Duration,
    },
    /// List all instances of the container. Ends with `Event::InstancesListed`.
    ListInstances { order: OrderId, instance: Instance },
    /// Remove exited instances in this order, then their old logs. Ends with `Event::RemovalEnded`.
    RemoveInstances {
        order: OrderId,
        instance: Instance,
        /// At least one; the newest is the last, so that it fences a repetition.
        container_ids: Vec<ContainerId>,
    },
    /// Send the report to the leaders. Ends with `Event::ReportAcknowledged` or `Event::ReportFailed`.
    Report(Report),
}

// === impl Effects ===

impl Effects {
    pub(crate) fn answer(&mut self, replies: Vec<ReplyToken>, answer: &Answer) {
        let answers = replies.into_iter().map(|reply| (reply, answer.clone()));
        self.answers.extend(answers);
    }

    pub(crate) fn report(&mut self, report: Report) {
        self.actions.push(Action::Report(report));
    }

    pub(crate) fn refuse(&mut self, replies: Vec<ReplyToken>, refusal: Refusal) {
        self.answer(replies, &Answer::Refused(refusal));
    }
}

// === impl Action ===

impl Action {
    /// The order that the action is part of.
    pub fn order(&self) -> &OrderId {
        match self {
            Self::Inspect { order, .. }
            | Self::RunHook { order, .. }
            | Self::Stop { order, .. }
            | Self::ListInstances { order, .. }
            | Self::RemoveInstances { order, .. }
            | Self::Report(Report { order, .. }) => order,
        }
    }
}

//! What can happen at a moment.

use model::{
    ids::{ContainerId, ContainerName, OrderId},
    order::{OrderAnswer, StopOrder, StopReport},
};
use node_rules::Event;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    SchedulerStarts,
    /// The scheduler looks at what there is to do.
    SchedulerWakes {
        life: u32,
    },
    /// No answer came to that sending.
    AnswerIsLate {
        life: u32,
        order: OrderId,
    },
    /// Pod status reaches the scheduler's watch.
    PodSeen,
    /// An order reaches the node.
    OrderArrives {
        life: u32,
        order: StopOrder,
    },
    AnswerArrives {
        life: u32,
        order: OrderId,
        answer: OrderAnswer,
    },
    ReportArrives {
        life: u32,
        report: StopReport,
    },
    /// A report was answered, or nobody did.
    ReportAnswered {
        life: u32,
        order: OrderId,
        sequence: u32,
        is_taken: bool,
    },
    ExecutorStarts,
    /// Something that this life of the executor waits for.
    ExecutorEvent {
        life: u32,
        event: Event,
    },
    HookEnds {
        life: u32,
        order: OrderId,
        container: ContainerName,
    },
    ContainerExits {
        name: ContainerName,
        id: ContainerId,
    },
    /// A container ends without our doing.
    ContainerEndsAlone(ContainerName),
    /// The kubelet looks and restarts what has ended.
    KubeletRelists(ContainerName),
}

/// The queue orders by time and number; two moments never share a number.
impl Ord for Moment {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

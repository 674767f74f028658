//! Stops that are not accepted yet: their fence is being checked.
//!
//! Owns the fence. Nothing of an admission is journaled; a crash forgets it, and the leader sends the order again.

use std::time::Duration;

use model::{
    instances::{InstanceState, Observed},
    order::{Instance, MAX_GRACE, Refusal},
    time::Monotonic,
};

use crate::{event::ReplyToken, record::StopOrder};

/// An order that was last sent longer ago than this may no longer be wanted; the leader sends it again if it is.
const ASKED_TOO_LONG_AGO: Duration = Duration::from_secs(10);

/// A stop whose instance is being inspected for the first time.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    pub(crate) order: StopOrder,
    pub(crate) traceparent: Option<String>,
    pub(crate) replies: Vec<ReplyToken>,
    /// When it was last sent.
    pub(crate) asked_at: Monotonic,
}

// === impl Admission ===

impl Admission {
    /// Joins a repetition of the same order.
    pub(crate) fn join(&mut self, repetition: Self) {
        self.replies.extend(repetition.replies);
        self.asked_at = repetition.asked_at;
        self.order.attempt = self.order.attempt.max(repetition.order.attempt);
        self.order.stop.begin_within = repetition.order.stop.begin_within;
    }

    /// Why the order is not accepted; `None` if the fence holds.
    pub(crate) fn refuse(&self, observed: Observed, now: Monotonic) -> Option<Refusal> {
        let is_late = now - self.asked_at > ASKED_TOO_LONG_AGO;
        let late = || unavailable("it took too long to answer");
        check_fence(&self.order.instance, observed).or_else(|| is_late.then(late))
    }
}

/// Refuses a stop that is unusable whatever the runtime says.
pub(crate) fn check_stop(order: &StopOrder) -> Option<Refusal> {
    let is_too_long = order.stop.grace > MAX_GRACE;
    let too_long = || invalid("its grace is longer than a year");
    check_instance(&order.instance).or_else(|| is_too_long.then(too_long))
}

/// Refuses an order whose fence is unusable.
pub(crate) fn check_instance(instance: &Instance) -> Option<Refusal> {
    let is_unfenced = instance.container_id.as_str().is_empty();
    is_unfenced.then(|| invalid("it names no container id"))
}

pub(crate) fn unavailable(message: &str) -> Refusal {
    Refusal::RuntimeUnavailable {
        message: message.to_owned(),
    }
}

fn invalid(message: &str) -> Refusal {
    Refusal::Invalid {
        message: message.to_owned(),
    }
}

/// The fence: only the named instance, and only while it is the newest and alive.
///
/// The restart count is informative: the container id alone is the identity.
fn check_fence(named: &Instance, observed: Observed) -> Option<Refusal> {
    match observed {
        Observed::NoPod => Some(Refusal::NoSuchPod),
        Observed::NoContainer => Some(Refusal::NoSuchContainer),
        Observed::Unavailable { message } => Some(Refusal::RuntimeUnavailable { message }),
        Observed::Newest(newest) if newest.container_id != named.container_id => {
            Some(Refusal::OtherInstance {
                container_id: newest.container_id,
                restart_count: newest.restart_count,
            })
        }
        Observed::Newest(newest) => match newest.state {
            InstanceState::Alive => None,
            InstanceState::Exited => Some(Refusal::AlreadyExited),
        },
    }
}

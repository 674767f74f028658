//! The Kubernetes events of a CRR: few, each told once.
//!
//! Owns which there are and what they say. A simple CRR has two: `Killing` on the pod, so that a requested restart can be
//! told from a crash, and its end on the CRR. Their names are derived, so that a new leader cannot tell one twice.

use model::{
    condition::{ConditionState, ConditionType},
    events::{Killing, requested_by},
    ids::ContainerName,
    order::Outcome,
    phase::{ContainerPhase, CrrPhase},
};
use order_rules::Progress;

use crate::snapshot::{PodView, Snapshot};

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrrEvent {
    /// `metadata.name`.
    pub name: String,
    pub about: About,
    pub is_warning: bool,
    pub reason: &'static str,
    pub message: String,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    Crr,
    /// A container of the pod.
    Container(ContainerName),
    /// A native sidecar of the pod.
    Sidecar(ContainerName),
}

/// Every event that what is known gives reason for.
pub(crate) fn events(snapshot: &Snapshot) -> Vec<CrrEvent> {
    let crr = &snapshot.crr;
    let mut events = Vec::new();
    for (position, container) in crr.containers.iter().enumerate() {
        let (is_taken, hook_error) = match snapshot.progress(&container.name) {
            Some(Progress::Accepted) => (true, None),
            Some(Progress::Done(Outcome::Stopped { hook_error })) => {
                (true, hook_error.as_ref().or(container.hook_fault.as_ref()))
            }
            Some(
                Progress::Done(Outcome::Gone | Outcome::Failed { .. } | Outcome::Removed { .. })
                | Progress::Sent
                | Progress::Refused(_)
                | Progress::Unanswered { .. },
            )
            | None => (false, None),
        };
        let Some(about) = about(snapshot, &container.name) else {
            continue; // Told once the pod is seen.
        };
        let on_pod = |what: &str, is_warning, reason, message| CrrEvent {
            name: format!("crr-{}-{what}-{position}", crr.uid),
            about: about.clone(),
            is_warning,
            reason,
            message,
        };
        if is_taken {
            let killing = Killing {
                container: container.name.clone(),
                crr: crr.key.name.clone(),
                requested_by: crr.requested_by.clone(),
            };
            events.push(on_pod("killing", false, "Killing", killing.to_string()));
        }
        if let Some(error) = hook_error {
            let message = format!(
                "preStop hook of container {} failed: {error}",
                container.name
            );
            events.push(on_pod("hook", true, "FailedPreStopHook", message));
        }
    }
    events.extend(of_crr(snapshot));
    events
}

/// Which kind of container it is; `None` until the pod was looked for.
fn about(snapshot: &Snapshot, container: &ContainerName) -> Option<About> {
    let name = container.clone();
    match &snapshot.pod {
        PodView::Unknown => None,
        PodView::Gone => Some(About::Container(name)),
        PodView::Present(pod) => {
            let status = pod.container(container);
            let is_sidecar = status.is_some_and(|status| status.is_sidecar);
            let about = if is_sidecar {
                About::Sidecar
            } else {
                About::Container
            };
            Some(about(name))
        }
    }
}

/// The event of the CRR itself: its end, or that it is at work where that takes long enough to be written.
fn of_crr(snapshot: &Snapshot) -> Option<CrrEvent> {
    let crr = &snapshot.crr;
    let event = |what: &str, is_warning, reason, message| CrrEvent {
        name: format!("crr-{}-{what}", crr.uid),
        about: About::Crr,
        is_warning,
        reason,
        message,
    };
    match crr.status.phase {
        Some(CrrPhase::Completed) if crr.is_labelled_active => {
            let condition = crr.status.condition(ConditionType::Succeeded)?;
            Some(match condition.state {
                ConditionState::True => event("end", false, "Recreated", condition.message.clone()),
                ConditionState::False | ConditionState::Unknown => {
                    event("end", true, "RecreateFailed", condition.message.clone())
                }
            })
        }
        Some(CrrPhase::Recreating) => {
            let dispatched = crr.status.condition(ConditionType::Dispatched)?;
            if dispatched.state != ConditionState::True {
                return None;
            }
            let open = crr.status.containers.iter();
            let names: Vec<_> = open
                .filter(|state| state.phase != ContainerPhase::Succeeded)
                .map(|state| state.name.as_str())
                .collect();
            let message = format!(
                "Recreating {} of pod {}{}",
                names.join(", "),
                crr.pod.name,
                requested_by(crr.requested_by.as_deref())
            );
            Some(event("start", false, "Recreating", message))
        }
        Some(CrrPhase::Completed | CrrPhase::Pending) | None => None,
    }
}

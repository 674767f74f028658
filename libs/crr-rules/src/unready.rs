//! Holding a pod NotReady before its containers are stopped: `unreadyGracePeriodSeconds`.
//!
//! Owns the order of its steps (facts: OpenKruise's A9): finalizer, gate shut, drain, stops; at the end the gate opens
//! before the finalizer goes. The gate's message lists everybody who holds it shut; others' entries are kept.

use std::time::Duration;

use jiff::Timestamp;
use model::{
    condition::ConditionType,
    ids::CrrKey,
    pod::{GateHolder, Pod},
    time::after,
};

use crate::{
    snapshot::{PodView, Snapshot},
    write::{GateWrite, Write},
};

/// Our name in the gate's message.
const USER_AGENT: &str = "ContainerRecreateRequest";

/// Conditions' times have whole seconds, so a drain is counted from the end of its first one.
const TIME_GRAIN: Duration = Duration::from_secs(1);

/// Where a CRR is on its way to the first stop.
pub(crate) enum Drain {
    /// No drain was asked for.
    NotAsked,
    /// This has to be written first.
    Write(Write),
    /// The pod has to be seen first.
    NeedsPod,
    /// The gate is shut: the drain begins with the next status.
    Begins,
    /// The drain has begun, and ends then.
    Until(Timestamp),
}

/// What is left to give back.
pub(crate) enum Release {
    Write(Write),
    NeedsPod,
    /// Nothing but the finalizer, if that.
    Done,
}

pub(crate) fn drain(snapshot: &Snapshot) -> Drain {
    let crr = &snapshot.crr;
    let Some(grace) = crr.strategy.unready_grace else {
        return Drain::NotAsked;
    };
    if let Some(begun) = crr.status.condition(ConditionType::PreRecreateGrace) {
        let grain = if grace.is_zero() {
            Duration::ZERO
        } else {
            TIME_GRAIN
        };
        return Drain::Until(after(after(begun.since, grace), grain));
    }
    if !crr.has_finalizer() {
        return Drain::Write(Write::AddFinalizer);
    }
    let Some(pod) = snapshot.present_pod() else {
        return Drain::NeedsPod;
    };
    match gate_write(pod, &crr.key, true) {
        Some(write) => Drain::Write(Write::Gate(write)),
        None => Drain::Begins,
    }
}

/// What has to be given back after the end, or when the CRR is deleted.
pub(crate) fn release(snapshot: &Snapshot) -> Release {
    let crr = &snapshot.crr;
    if !crr.has_finalizer() {
        return Release::Done;
    }
    match &snapshot.pod {
        PodView::Unknown => Release::NeedsPod,
        PodView::Gone => Release::Done,
        PodView::Present(pod) if Some(&pod.uid) != crr.pod_uid.as_ref() => Release::Done,
        PodView::Present(pod) => match gate_write(pod, &crr.key, false) {
            Some(write) => Release::Write(Write::Gate(write)),
            None => Release::Done,
        },
    }
}

/// The write that puts our entry into the gate's message or takes it out; `None` where nothing is to be changed.
fn gate_write(pod: &Pod, crr: &CrrKey, is_held: bool) -> Option<GateWrite> {
    let gate = pod.gate.as_ref()?;
    let us = GateHolder {
        user_agent: USER_AGENT.to_owned(),
        key: crr.to_string(),
    };
    // What nobody can read as a list holds nothing shut.
    let before: Vec<GateHolder> = serde_json::from_str(&gate.message).unwrap_or_default();
    let mut holders = before.clone();
    holders.retain(|holder| *holder != us);
    if is_held {
        holders.push(us);
    }
    holders.sort();
    let is_open = holders.is_empty();
    if holders == before && gate.is_open == Some(is_open) {
        return None;
    }
    Some(GateWrite {
        pod_version: pod.version.clone(),
        is_open,
        // A list of strings can always be written.
        message: serde_json::to_string(&holders).unwrap_or_default(),
        is_ready_too: is_held && pod.are_containers_ready,
    })
}

/// The write that opens the gate of a new pod: a gated pod is ready only once its condition was written.
///
/// `None` if the condition is there already, or the pod is being deleted.
pub fn open_new_gate(pod: &Pod) -> Option<GateWrite> {
    let is_new = pod.gate.as_ref()?.is_open.is_none();
    (is_new && !pod.is_being_deleted).then(|| GateWrite {
        pod_version: pod.version.clone(),
        is_open: true,
        message: "[]".to_owned(),
        is_ready_too: false,
    })
}

#[cfg(test)]
mod tests {
    use model::ids::CrrName;
    use testkit::pod;

    use super::*;

    const OURS: &str = r#"[{"userAgent":"ContainerRecreateRequest","key":"shop/restart"}]"#;
    const BOTH: &str = r#"[{"userAgent":"ContainerRecreateRequest","key":"shop/restart"},{"userAgent":"InPlaceUpdate","key":"shop/web"}]"#;
    const OTHERS: &str = r#"[{"userAgent":"InPlaceUpdate","key":"shop/web"}]"#;

    /// `<is_open> <message>` of the write, `-` for none.
    fn check(is_open: Option<bool>, message: &str, is_held: bool, expected: &str) {
        let pod = pod(&[]).version("7").gated(is_open, message).build();
        let crr = CrrKey {
            namespace: "shop".into(),
            name: CrrName::new("restart"),
        };
        let write = gate_write(&pod, &crr, is_held);
        let told = write.map_or("-".to_owned(), |write| {
            assert_eq!(
                (write.pod_version.as_str(), write.is_ready_too),
                ("7", is_held)
            );
            format!("{} {}", write.is_open, write.message)
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn holds_and_lets_go() {
        check(None, "", true, &format!("false {OURS}"));
        check(Some(true), "[]", true, &format!("false {OURS}"));
        check(Some(false), OURS, true, "-");
        check(Some(false), OURS, false, "true []");
        check(Some(true), "[]", false, "-");
    }

    #[test]
    fn keeps_the_entries_of_others_in_order() {
        check(Some(false), OTHERS, true, &format!("false {BOTH}"));
        check(Some(false), BOTH, false, &format!("false {OTHERS}"));
        check(Some(false), OTHERS, false, "-");
    }

    #[test]
    fn a_message_that_is_no_list_is_made_one() {
        check(Some(false), "broken", true, &format!("false {OURS}"));
        check(Some(false), "broken", false, "true []");
    }

    #[test]
    fn a_gate_whose_word_and_list_disagree_is_put_right() {
        check(Some(true), OURS, true, &format!("false {OURS}"));
    }

    #[test]
    fn only_a_gate_without_a_condition_is_opened() {
        let opens = |builder: testkit::PodBuilder| open_new_gate(&builder.build()).is_some();
        assert!(opens(pod(&[]).gated(None, "")));
        assert!(!opens(pod(&[]).gated(Some(false), OURS)));
        assert!(!opens(pod(&[]).gated(None, "").deleted()));
        assert!(!opens(pod(&[])));
    }
}

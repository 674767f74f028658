//! Taking events in: what each changes in the leader's memory, and which CRRs it concerns.
//!
//! Owns the memory's updates. Nothing is decided or sent here.

use std::collections::BTreeSet;

use api_client::WatchEvent;
use bus::Delivery;
use crr_rules::{PodView, Silence};
use k8s_api::crd::ContainerRecreateRequest;
use kube::ResourceExt;
use model::{
    error_chain::ErrorChain,
    ids::{CrrKey, CrrUid, NodeName, OrderId, PodKey},
    order::{DropAnswer, OrderAnswer, StopReport},
    watch::Version,
};
use service_kit::clock;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::{Driver, WRITE_AGAIN_AFTER, Writing, Written};
use crate::{
    cluster::{WriteError, crr_key},
    tracked::Tracked,
};

impl Driver {
    pub(super) fn on_crr(
        &mut self,
        event: WatchEvent<ContainerRecreateRequest>,
    ) -> BTreeSet<CrrKey> {
        match event {
            WatchEvent::ListBegun => {
                self.unlisted = self.crrs.keys();
                BTreeSet::new()
            }
            WatchEvent::Seen(object) => {
                let touched = self.on_object(&object);
                let key = k8s_api::convert::crr_key(&object);
                if let Some(tracked) = key.and_then(|key| self.crrs.get_mut(&key)) {
                    tracked.show(&object.resource_version().unwrap_or_default());
                }
                touched
            }
            WatchEvent::Unreadable(key) => {
                self.unlisted.remove(&crr_key(&key));
                BTreeSet::new()
            }
            WatchEvent::Gone(key) => self.on_gone(&crr_key(&key)),
            WatchEvent::ListEnded => {
                let gone = std::mem::take(&mut self.unlisted);
                let touched = gone.iter().flat_map(|crr| self.on_gone(crr)).collect();
                if std::mem::replace(&mut self.are_crrs_listed, true) {
                    touched
                } else {
                    self.crrs.keys()
                }
            }
        }
    }

    /// A CRR as the API server shows it. Concerns every CRR of its pod: one's end is another's turn.
    pub(super) fn on_object(&mut self, object: &ContainerRecreateRequest) -> BTreeSet<CrrKey> {
        let crr = match k8s_api::convert::crr_from_object(object) {
            Ok(crr) => crr,
            Err(error) => {
                let name = object.name_any();
                warn!(ns = object.namespace(), crr = name, error = %ErrorChain(&error), "CRR cannot be read");
                return BTreeSet::new();
            }
        };
        let key = crr.key.clone();
        let pod = crr.pod.clone();
        let version = object.resource_version().unwrap_or_default();
        self.unlisted.remove(&key);
        let known = self.crrs.get(&key);
        let mut touched = if known.is_some_and(|known| known.crr.uid != crr.uid) {
            self.on_gone(&key) // Deleted and made anew while nobody told us.
        } else {
            BTreeSet::new()
        };
        if self.crrs.see(crr, version)
            && let Some(ended) = self.crrs.get(&key)
        {
            self.metrics.count_end(&ended.crr, clock::now());
        }
        touched.extend(self.crrs.keys_of(&pod));
        touched
    }

    pub(super) fn on_gone(&mut self, crr: &CrrKey) -> BTreeSet<CrrKey> {
        self.forget_orders(crr);
        self.wakes.set(crr, None);
        let Some(tracked) = self.crrs.remove(crr) else {
            return BTreeSet::new();
        };
        let pod = tracked.crr.pod;
        self.unwatch_unneeded(&pod);
        self.crrs.keys_of(&pod)
    }

    pub(super) fn on_pod(&mut self, key: &PodKey, view: PodView) -> BTreeSet<CrrKey> {
        let Some(watched) = self.pods.get_mut(key) else {
            return BTreeSet::new();
        };
        if is_older(&view, &watched.view) {
            return BTreeSet::new(); // Overtaken by the answer to our own write.
        }
        watched.view = view;
        self.crrs.keys_of(key)
    }

    pub(super) fn on_gate_written(
        &mut self,
        crr: CrrKey,
        uid: &CrrUid,
        pod: &PodKey,
        result: Result<Option<PodView>, WriteError>,
    ) -> BTreeSet<CrrKey> {
        let Some(tracked) = self.tracked_as(&crr, uid) else {
            return BTreeSet::new();
        };
        tracked.is_writing = false;
        let view = match result {
            Ok(view) => {
                self.metrics.count_write("ok");
                view
            }
            Err(WriteError::Gone) => {
                self.metrics.count_write("gone");
                Some(PodView::Gone)
            }
            Err(error) => {
                self.metrics.count_write(error.kind());
                debug!(%crr, error = %ErrorChain(&error), "Pod's gate was not written, trying again");
                // A newer pod is on its way; the time is for the case that its arrival was before.
                self.wakes
                    .set(&crr, Some(Instant::now() + WRITE_AGAIN_AFTER));
                return BTreeSet::new();
            }
        };
        let mut touched = view.map_or_else(BTreeSet::new, |view| self.on_pod(pod, view));
        // Its plan waited for this answer, also where a newer pod was seen before.
        touched.insert(crr);
        touched
    }

    /// What is known of a CRR, unless it is another one of that name by now.
    fn tracked_as(&mut self, crr: &CrrKey, uid: &CrrUid) -> Option<&mut Tracked> {
        let tracked = self.crrs.get_mut(crr)?;
        (tracked.crr.uid == *uid).then_some(tracked)
    }

    pub(super) fn on_dropped(&mut self, drop: &OrderId, answer: Result<DropAnswer, Silence>) {
        let result = match &answer {
            Ok(DropAnswer::Dropped { .. }) => "dropped",
            Ok(DropAnswer::Refused(_)) => "refused",
            Err(_) => "silent",
        };
        self.metrics.count_order(result);
        info!(order = %drop, ?answer, "Drop answered");
        self.drops
            .on_answer(drop, answer.ok().as_ref(), clock::now());
    }

    pub(super) fn on_nudged(
        &mut self,
        crr: CrrKey,
        result: Result<(), WriteError>,
    ) -> BTreeSet<CrrKey> {
        match result {
            Ok(()) => self.metrics.count_write("ok"),
            Err(error) => {
                self.metrics.count_write(error.kind());
                warn!(%crr, error = %ErrorChain(&error), "Pod was not nudged, trying again");
                if let Some(tracked) = self.crrs.get_mut(&crr) {
                    tracked.nudged_at = None;
                    self.wakes
                        .set(&crr, Some(Instant::now() + WRITE_AGAIN_AFTER));
                }
                return BTreeSet::new();
            }
        }
        BTreeSet::from([crr])
    }

    pub(super) fn on_answered(&mut self, order: &OrderId, answer: Result<OrderAnswer, Silence>) {
        let now = clock::now();
        match answer {
            Ok(answer) => {
                let result = match &answer {
                    OrderAnswer::Accepted => "accepted",
                    OrderAnswer::Refused(_) => "refused",
                    OrderAnswer::Done { .. } => "done",
                };
                self.metrics.count_order(result);
                info!(%order, ?answer, "Order answered");
                self.book.on_answer(order, answer, now);
            }
            Err(silence) => {
                self.metrics.count_order("silent");
                warn!(%order, ?silence, "Order not answered, sending it again");
                self.book.on_silence(order, silence, now);
            }
        }
    }

    pub(super) async fn on_report(
        &mut self,
        delivery: Delivery<StopReport, ()>,
    ) -> BTreeSet<CrrKey> {
        let report = &delivery.message;
        let (order, node) = (&report.order, &delivery.node);
        if !self.may_report(order, node) {
            // The subject is the sender's identity: a node speaks of its own orders only.
            warn!(%order, %node, "Report of another node's order dropped");
            return BTreeSet::new();
        }
        info!(%order, %node, outcome = ?report.outcome, "Stop reported");
        self.book.on_report(report);
        let namespace = report.instance.namespace.clone();
        let pod = PodKey {
            namespace,
            name: report.instance.pod.clone(),
        };
        let touched = self.crrs.keys_of(&pod);
        // Acknowledged though nothing is written yet: a later leader asks the node's journal again.
        if let Err(error) = delivery.reply.send(()).await {
            debug!(error = %ErrorChain(&error), "Report was not acknowledged");
        }
        touched
    }

    /// Whether an order is that node's, or of no CRR that is known: then nothing hangs on it.
    fn may_report(&self, order: &OrderId, node: &NodeName) -> bool {
        let owner = self.crrs.owner(order);
        owner.is_none_or(|tracked| tracked.crr.node.as_ref() == Some(node))
    }

    pub(super) fn on_written(
        &mut self,
        writing: &Writing,
        result: Result<Option<Box<ContainerRecreateRequest>>, WriteError>,
    ) -> BTreeSet<CrrKey> {
        let now = clock::now();
        let Writing {
            crr,
            uid,
            version,
            what,
        } = writing;
        let kind = result.as_ref().map_or_else(WriteError::kind, |_| "ok");
        self.metrics.count_write(kind);
        let Some(tracked) = self.tracked_as(crr, uid) else {
            return BTreeSet::new();
        };
        tracked.is_writing = false;
        match result {
            Ok(object) => {
                if *what == Written::Status {
                    tracked.status_written_at = Some(now);
                }
                object.map_or_else(BTreeSet::new, |object| self.on_object(&object))
            }
            Err(WriteError::Conflict) => {
                debug!(%crr, "CRR changed meanwhile");
                // What it met may have been seen before its answer came.
                tracked.is_outdated = tracked.version == *version;
                BTreeSet::from([crr.clone()])
            }
            Err(WriteError::Gone) => self.on_gone(crr),
            Err(error @ WriteError::Failed(_)) => {
                warn!(%crr, ?what, error = %ErrorChain(&error), "CRR was not written, trying again");
                self.wakes
                    .set(crr, Some(Instant::now() + WRITE_AGAIN_AFTER));
                BTreeSet::new()
            }
        }
    }
}

/// Whether a view of a pod is an older one of the same pod.
fn is_older(view: &PodView, known: &PodView) -> bool {
    match (view, known) {
        (PodView::Present(view), PodView::Present(known)) => {
            view.uid == known.uid && Version::parse(&view.version) < Version::parse(&known.version)
        }
        (PodView::Unknown | PodView::Gone, _) | (_, PodView::Unknown | PodView::Gone) => false,
    }
}

//! Carrying a plan out: at most one write of a CRR at a time, and orders as tasks of their own.
//!
//! Owns the requests' tasks and the pod watches. Each request ends as an event of the driver.

use bus::RequestError;
use crr_rules::{Plan, PodView, Silence, order_book::ANSWER_WITHIN};
use futures::{StreamExt, pin_mut};
use jiff::Timestamp;
use model::{
    crr::CrrStatus,
    ids::{CrrKey, PodKey},
    order::StopOrder,
};
use service_kit::trace;
use tracing::{Instrument, info, info_span, warn};

use super::{Driver, Event, WatchedPod, Write};
use crate::tracked::is_ended;

impl Driver {
    pub(super) fn act(&mut self, crr: &CrrKey, plan: Plan, now: Timestamp) {
        let Plan {
            status,
            order,
            remove_active_label,
            delete,
            needs_pod,
            wake_at,
        } = plan;
        let Some(tracked) = self.tracked.get_mut(crr) else {
            return;
        };
        tracked.wake_at = wake_at;
        let pod = tracked.crr.pod.clone();
        if needs_pod {
            self.watch(&pod);
        }
        if let Some(status) = status {
            self.write_status(crr, status);
        } else if remove_active_label {
            self.write_label(crr);
        } else if delete {
            self.delete(crr);
        } else if let Some(order) = order {
            self.send(crr, &order, now);
        } else {
            self.forget_ended(crr);
        }
        self.unwatch_unneeded(&pod);
    }

    fn write_status(&mut self, crr: &CrrKey, status: CrrStatus) {
        let Some(tracked) = self.tracked.get_mut(crr) else {
            return;
        };
        tracked.is_writing = true;
        let phase = status
            .phase
            .map(|phase| format!("{phase:?}"))
            .unwrap_or_default();
        if status.phase != tracked.crr.status.phase {
            info!(%crr, phase, message = status.message, "Phase changes");
        }
        let span = info_span!(parent: &tracked.span, "write status", phase);
        let (cluster, crr, version) = (self.cluster.clone(), crr.clone(), tracked.version.clone());
        let request = async move {
            let result = cluster.write_status(&crr, &version, &status).await;
            Event::Written(
                crr,
                Write::Status,
                result.map(|object| Some(Box::new(object))),
            )
        };
        self.requests.spawn(request.instrument(span));
    }

    fn write_label(&mut self, crr: &CrrKey) {
        let Some(tracked) = self.tracked.get_mut(crr) else {
            return;
        };
        tracked.is_writing = true;
        let (cluster, crr, uid) = (self.cluster.clone(), crr.clone(), tracked.crr.uid.clone());
        self.requests.spawn(async move {
            let result = cluster.remove_active_label(&crr, &uid).await;
            Event::Written(
                crr,
                Write::Label,
                result.map(|object| Some(Box::new(object))),
            )
        });
    }

    fn delete(&mut self, crr: &CrrKey) {
        let Some(tracked) = self.tracked.get_mut(crr) else {
            return;
        };
        tracked.is_writing = true;
        info!(%crr, "Deleting: its time to live is over");
        let (cluster, crr, uid) = (self.cluster.clone(), crr.clone(), tracked.crr.uid.clone());
        self.requests.spawn(async move {
            let result = cluster.delete(&crr, &uid).await;
            Event::Written(crr, Write::Delete, result.map(|()| None))
        });
    }

    /// Sends the wanted order when the book says that it is due.
    fn send(&mut self, crr: &CrrKey, order: &StopOrder, now: Timestamp) {
        let due = self.book.send_due(order, now);
        let Some(tracked) = self.tracked.get_mut(crr) else {
            return;
        };
        let again_at = self.book.send_again_at(&order.id);
        tracked.wake_at = tracked.wake_at.into_iter().chain(again_at).min();
        let Some(order) = due else { return };
        let Some(node) = tracked.crr.node.clone() else {
            warn!(%crr, "CRR has no node label: nobody can be asked to stop anything");
            return;
        };
        let container = &order.instance.container;
        let attempt = order.attempt;
        let span = info_span!(parent: &tracked.span, "send order", %container, %node, attempt);
        let (bus, crr) = (self.bus.clone(), crr.clone());
        let traceparent = trace::traceparent_of(&span);
        let deadline = ANSWER_WITHIN;
        let request = async move {
            let sent = bus
                .send_order(&node, &order, traceparent.as_deref(), deadline)
                .await;
            let answer = sent.map_err(|error| match error {
                RequestError::NoResponders { .. } | RequestError::Timeout { .. }
                    if bus.is_connected() =>
                {
                    Silence::Node
                }
                RequestError::Malformed { .. } => Silence::Node,
                RequestError::NoResponders { .. }
                | RequestError::Timeout { .. }
                | RequestError::Disconnected
                | RequestError::Failed { .. } => Silence::Bus,
            });
            Event::Answered(crr, order.id, answer)
        };
        self.requests.spawn(request.instrument(span));
    }

    /// Drops an ended CRR that nothing is waited for any more; its objects stay in the API server.
    fn forget_ended(&mut self, crr: &CrrKey) {
        let Some(tracked) = self.tracked.get(crr) else {
            return;
        };
        let has_orders = tracked
            .order_ids()
            .any(|order| self.book.send_again_at(&order).is_some());
        if is_ended(&tracked.crr) && tracked.wake_at.is_none() && !has_orders {
            for order in tracked.order_ids() {
                self.book.forget(&order);
            }
            self.tracked.remove(crr);
        }
    }

    fn watch(&mut self, pod: &PodKey) {
        if self.pods.contains_key(pod) {
            return;
        }
        let views = self.cluster.watch_pod(pod);
        let (events, key) = (self.pod_events.0.clone(), pod.clone());
        let watch = self.watches.spawn(async move {
            pin_mut!(views);
            while let Some(view) = views.next().await {
                if events.send(Event::Pod(key.clone(), view)).await.is_err() {
                    return; // The driver is gone.
                }
            }
        });
        self.pods.insert(
            pod.clone(),
            WatchedPod {
                view: PodView::Unknown,
                watch,
            },
        );
    }

    /// Ends the watch of a pod that no active CRR names.
    pub(super) fn unwatch_unneeded(&mut self, pod: &PodKey) {
        let mut crrs = self.tracked.values();
        if crrs.any(|tracked| tracked.is_active() && tracked.crr.pod == *pod) {
            return;
        }
        if let Some(watched) = self.pods.remove(pod) {
            watched.watch.abort();
        }
        // Ended watches are reaped here, so that the set does not grow.
        while self.watches.try_join_next().is_some() {}
    }
}

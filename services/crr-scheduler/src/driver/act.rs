//! Carrying a plan out: at most one write of a CRR at a time, and orders as tasks of their own.
//!
//! Owns the requests' tasks and the pod watches. Each request ends as an event of the driver.

use api_client::events::publish_with_retry;
use bus::{Bus, RequestError};
use crr_rules::{CrrEvent, GateWrite, Plan, PodView, Silence, Write, order_book::ANSWER_WITHIN};
use futures::{StreamExt, pin_mut};
use jiff::Timestamp;
use k8s_api::crd::ContainerRecreateRequest;
use model::{
    crr::{Crr, CrrStatus},
    error_chain::ErrorChain,
    ids::{CrrKey, NodeName, PodKey},
    order::{DropOrder, StopOrder},
};
use service_kit::{instant_of, trace};
use tokio::time::Instant;
use tracing::{Instrument, Span, debug, info, info_span, warn};

use super::{Driver, Event, WatchedPod, Writing, Written};
use crate::{
    cluster::{Cluster, WriteError},
    tracked::{Tracked, is_ended},
};

impl Driver {
    pub(super) fn act(&mut self, crr: &CrrKey, plan: Plan, now: Timestamp) {
        let Plan {
            write,
            order,
            drops,
            nudge,
            events,
            needs_pod,
            wake_at,
        } = plan;
        let moment = |at| instant_of(at, now, Instant::now());
        self.wakes.set(crr, wake_at.map(moment));
        let Some(tracked) = self.crrs.get(crr) else {
            return;
        };
        let pod = tracked.crr.pod.clone();
        if needs_pod {
            self.watch(&pod);
        }
        self.tell(crr, events, now);
        match write {
            Some(Write::Status(status)) => self.write_status(crr, status),
            Some(Write::Gate(gate)) => self.write_gate(crr, gate, now),
            Some(Write::AddFinalizer) => self.write_object(
                crr,
                Written::Finalizer,
                |cluster, crr, version| async move {
                    cluster.add_finalizer(&crr, &version).await.map(Some)
                },
            ),
            Some(Write::Close) => {
                self.write_object(crr, Written::Close, |cluster, crr, version| async move {
                    cluster.close(&crr, &version).await.map(Some)
                });
            }
            Some(Write::Delete) => {
                info!(%crr, "Deleting: its time to live is over");
                self.write_object(crr, Written::Delete, |cluster, crr, _| async move {
                    cluster.delete(&crr.key, &crr.uid).await.map(|()| None)
                });
            }
            None => {
                if let Some(order) = order {
                    self.send(crr, &order, now);
                }
                for drop in drops {
                    self.send_drop(crr, &drop, now);
                }
                if nudge {
                    self.nudge(crr, now);
                }
                self.forget_ended(crr, now);
            }
        }
        self.unwatch_unneeded(&pod);
    }

    fn write_status(&mut self, crr: &CrrKey, status: CrrStatus) {
        let Some(tracked) = self.crrs.get_mut(crr) else {
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
        let (cluster, writing) = (self.cluster.clone(), writing(tracked, Written::Status));
        let request = async move {
            let (crr, version) = (&writing.crr, &writing.version);
            let result = cluster.write_status(crr, version, &status).await;
            Event::Written(writing, result.map(|object| Some(Box::new(object))))
        };
        self.requests.spawn(request.instrument(span));
    }

    /// Begins a write of the object itself.
    fn write_object<R>(
        &mut self,
        key: &CrrKey,
        written: Written,
        request: impl FnOnce(Cluster, Crr, String) -> R,
    ) where
        R: Future<Output = Result<Option<ContainerRecreateRequest>, WriteError>> + Send + 'static,
    {
        let Some(tracked) = self.crrs.get_mut(key) else {
            return;
        };
        tracked.is_writing = true;
        let (crr, version) = (tracked.crr.clone(), tracked.version.clone());
        let writing = writing(tracked, written);
        let request = request(self.cluster.clone(), crr, version);
        self.requests.spawn(async move {
            let result = request.await;
            Event::Written(writing, result.map(|object| object.map(Box::new)))
        });
    }

    /// Opens or shuts the pod's readiness gate.
    fn write_gate(&mut self, crr: &CrrKey, gate: GateWrite, now: Timestamp) {
        let Some(tracked) = self.crrs.get_mut(crr) else {
            return;
        };
        let Some(uid) = tracked.crr.pod_uid.clone() else {
            return;
        };
        tracked.is_writing = true;
        let is_open = gate.is_open;
        info!(%crr, is_open, message = gate.message, "Pod's readiness gate changes");
        let span = info_span!(parent: &tracked.span, "write readiness gate", is_open);
        let (cluster, crr, pod) = (self.cluster.clone(), crr.clone(), tracked.crr.pod.clone());
        let crr_uid = tracked.crr.uid.clone();
        let request = async move {
            let result = cluster.write_gate(&pod, &uid, &gate, now).await;
            Event::GateWritten(crr, crr_uid, pod, result)
        };
        self.requests.spawn(request.instrument(span));
    }

    /// Tells the events that were not told yet. One that cannot be told is tried again a few times, then dropped:
    /// events are a courtesy, the status is the truth.
    fn tell(&mut self, crr: &CrrKey, events: Vec<CrrEvent>, now: Timestamp) {
        let Some(tracked) = self.crrs.get_mut(crr) else {
            return;
        };
        for event in events {
            if !tracked.told.insert(event.name.clone()) {
                continue;
            }
            let (cluster, crr) = (self.cluster.clone(), tracked.crr.clone());
            self.requests.spawn(async move {
                if let Err(error) = publish_with_retry(|| cluster.tell(&crr, &event, now)).await {
                    let error = ErrorChain(&error).to_string();
                    debug!(crr = %crr.key, event.name, error, "Event was not told");
                }
                Event::Told
            });
        }
    }

    /// Has the kubelet look at the pod now.
    fn nudge(&mut self, crr: &CrrKey, now: Timestamp) {
        let Some(tracked) = self.crrs.get_mut(crr) else {
            return;
        };
        let Some(uid) = tracked.crr.pod_uid.clone() else {
            return;
        };
        tracked.nudged_at = Some(now);
        let span = info_span!(parent: &tracked.span, "nudge");
        let (cluster, crr, pod) = (self.cluster.clone(), crr.clone(), tracked.crr.pod.clone());
        let request = async move {
            let result = cluster.nudge(&pod, &uid, now).await;
            Event::Nudged(crr, result)
        };
        self.requests.spawn(request.instrument(span));
    }

    /// Sends the wanted order when the book says that it is due.
    fn send(&mut self, crr: &CrrKey, order: &StopOrder, now: Timestamp) {
        let due = self.book.send_due(order, now);
        if let Some(again_at) = self.book.send_again_at(&order.id) {
            self.wake_by(crr, again_at, now);
        }
        let (Some(order), Some(tracked)) = (due, self.crrs.get(crr)) else {
            return;
        };
        let Some(node) = tracked.crr.node.clone() else {
            warn!(%crr, "CRR has no node label: nobody can be asked to stop anything");
            return;
        };
        let container = &order.instance.container;
        let attempt = order.attempt;
        let span = info_span!(parent: &tracked.span, "send order", %container, %node, attempt);
        let (bus, crr) = (self.bus.clone(), crr.clone());
        let traceparent = trace::traceparent_of(&span);
        let request = async move {
            let sent = bus
                .send_order(&node, &order, traceparent.as_deref(), ANSWER_WITHIN)
                .await;
            let answer = sent.map_err(|error| silence_of(&bus, &error));
            Event::Answered(crr, order.id, answer)
        };
        self.requests.spawn(request.instrument(span));
    }

    /// Sends the wanted drop when the book says that it is due.
    fn send_drop(&mut self, crr: &CrrKey, drop: &DropOrder, now: Timestamp) {
        let due = self.drops.send_due(drop, now);
        if let Some(again_at) = self.drops.send_again_at(&drop.id) {
            self.wake_by(crr, again_at, now);
        }
        let (Some(drop), Some(tracked)) = (due, self.crrs.get(crr)) else {
            return;
        };
        let Some(node) = tracked.crr.node.clone() else {
            return;
        };
        let span = drop_span(tracked, &drop, &node);
        let (bus, crr) = (self.bus.clone(), crr.clone());
        let traceparent = trace::traceparent_of(&span);
        let request = async move {
            let sent = bus
                .send_drop_order(&node, &drop, traceparent.as_deref(), ANSWER_WITHIN)
                .await;
            Event::Dropped(crr, drop.id, sent.map_err(|error| silence_of(&bus, &error)))
        };
        self.requests.spawn(request.instrument(span));
    }

    /// Drops an ended CRR that nothing is waited for any more; its objects stay in the API server.
    fn forget_ended(&mut self, crr: &CrrKey, now: Timestamp) {
        let Some(tracked) = self.crrs.get(crr) else {
            return;
        };
        if !is_ended(&tracked.crr) {
            return;
        }
        let mut orders = tracked.order_ids();
        let is_reported = !orders.any(|order| self.book.send_again_at(&order).is_some());
        drop(orders);
        let until = tracked.last_report_at();
        let is_shown = tracked.is_shown();
        if !is_reported && now < until {
            self.wake_by(crr, until, now);
        }
        if is_shown && self.wakes.get(crr).is_none() {
            self.forget_orders(crr);
            self.crrs.remove(crr);
        }
    }

    /// Drops what the books hold of a CRR.
    pub(super) fn forget_orders(&mut self, crr: &CrrKey) {
        let Some(tracked) = self.crrs.get(crr) else {
            return;
        };
        for order in tracked.order_ids() {
            self.book.forget(&order);
        }
        for drop in tracked.drop_ids() {
            self.drops.forget(&drop);
        }
    }

    /// Plans for the CRR then, or earlier.
    fn wake_by(&mut self, crr: &CrrKey, at: Timestamp, now: Timestamp) {
        let at = instant_of(at, now, Instant::now());
        self.wakes.set_sooner(crr, at);
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

    /// Ends the watch of a pod that no CRR needs any more.
    pub(super) fn unwatch_unneeded(&mut self, pod: &PodKey) {
        if self.crrs.of_pod(pod).any(Tracked::needs_pod) {
            return;
        }
        if let Some(watched) = self.pods.remove(pod) {
            watched.watch.abort();
        }
        // Ended watches are reaped here, so that the set does not grow.
        while self.watches.try_join_next().is_some() {}
    }
}

fn writing(tracked: &Tracked, what: Written) -> Writing {
    Writing {
        crr: tracked.crr.key.clone(),
        uid: tracked.crr.uid.clone(),
        version: tracked.version.clone(),
        what,
    }
}

/// Whose silence an unanswered request is.
fn silence_of(bus: &Bus, error: &RequestError) -> Silence {
    match error {
        RequestError::NoResponders { .. } | RequestError::Timeout { .. } if bus.is_connected() => {
            Silence::Node
        }
        RequestError::Malformed { .. } => Silence::Node,
        RequestError::NoResponders { .. }
        | RequestError::Timeout { .. }
        | RequestError::Disconnected
        | RequestError::Failed { .. } => Silence::Bus,
    }
}

fn drop_span(tracked: &Tracked, drop: &DropOrder, node: &NodeName) -> Span {
    let (container, attempt) = (&drop.instance.container, drop.attempt);
    info_span!(parent: &tracked.span, "drop dead instances", %container, %node, attempt)
}

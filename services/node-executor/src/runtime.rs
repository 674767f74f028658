//! The container runtime, as this node sees it.
//!
//! Owns the health checks of runtime and bus, and the one event watcher.

mod event_watcher;
mod health;
mod observations;

use bus::Bus;
use cri::Cri;
use model::presence::Runtime;
use service_kit::Kit;
use tokio::sync::{mpsc, watch};

pub(crate) use self::observations::Update;
use self::{event_watcher::EventWatcher, observations::Updates};
use crate::infallible;

/// The runtime that answers now.
pub(crate) type Answering = watch::Receiver<Option<Runtime>>;

/// Adds the tasks that watch runtime and bus.
pub(crate) fn add_tasks(
    kit: &mut Kit,
    cri: &Cri,
    bus: &Bus,
) -> (Answering, mpsc::Receiver<Update>) {
    let (tx, runtime) = watch::channel(None);
    let shutdown = kit.shutdown.clone();
    let readiness = kit.admin.readiness();
    let health = health::watch_runtime(cri.clone(), tx, readiness.clone(), shutdown.clone());
    kit.tasks.add("runtime", infallible(health));
    let health = health::watch_bus(bus.clone(), readiness, shutdown.clone());
    kit.tasks.add("bus", infallible(health));
    let (updates, observed) = Updates::new();
    let watcher = EventWatcher {
        cri: cri.clone(),
        runtime: runtime.clone(),
        updates,
    };
    kit.tasks
        .add("events", infallible(watcher.watch_events(shutdown)));
    (runtime, observed)
}

//! The leader's loop: wait, decide, act, report.
//!
//! Owns the machine and the clock that it is given. All decisions are the machine's. Nothing is stored here: pods and
//! ConfigMaps are the store.

use std::time::Duration;

use barrier_rules::{Event, LaunchState, Machine};
use bus::{Bus, Publication};
use futures::StreamExt;
use serde_json::{Map, Value, json};
use service_kit::{Clock, StateCell};
use tokio::task::JoinError;

use crate::{
    cluster::Cluster,
    effects::Effects,
    metrics::Metrics,
    observe::{map_event, pod_event},
};

/// Launching pods at `/state`, which is written with every event.
const SHOWN: usize = 50;

/// Why the leader cannot continue.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManagerError {
    #[error("failed to listen for starts")]
    Subscribe(#[source] bus::SubscribeError),
    #[error("the bus has closed the subscription to starts")]
    Starts,
    #[error("the watch of pods has ended")]
    Pods,
    #[error("the watch of ConfigMaps has ended")]
    Maps,
    #[error("a request's task panicked")]
    Request(#[source] JoinError),
}

/// The leader.
pub(crate) struct Manager {
    machine: Machine,
    cluster: Cluster,
    effects: Effects,
    metrics: Metrics,
    state: StateCell,
    clock: Clock,
}

// === impl Manager ===

impl Manager {
    pub(crate) fn new(
        cluster: Cluster,
        metrics: Metrics,
        state: StateCell,
        stuck_after: Duration,
    ) -> Self {
        Self {
            machine: Machine::new(stuck_after),
            effects: Effects::new(cluster.clone(), metrics.clone()),
            cluster,
            metrics,
            state,
            clock: Clock::start(),
        }
    }

    /// Leads until it is dropped.
    ///
    /// # Errors
    /// The bus refuses the subscription, or a stream that never ends has ended.
    pub(crate) async fn run(mut self, bus: &Bus) -> Result<(), ManagerError> {
        use ManagerError::{Maps, Pods, Request, Starts, Subscribe};
        let mut starts = bus.watch_started().await.map_err(Subscribe)?;
        let mut pods = self.cluster.watch_pods().boxed();
        let mut maps = self.cluster.watch_maps().boxed();
        loop {
            let deadline = self.clock.wait(self.machine.next_deadline());
            let event = tokio::select! {
                pod = pods.next() => Some(pod_event(pod.ok_or(Pods)?)),
                map = maps.next() => map_event(map.ok_or(Maps)?),
                started = starts.next() => {
                    let Publication { node, message } = started.ok_or(Starts)?;
                    Some(Event::Started { node, started: message })
                }
                Some(ended) = self.effects.next() => ended.map_err(Request)?,
                () = deadline => Some(Event::Tick),
            };
            if let Some(event) = event {
                self.take(event);
                self.report(bus);
            }
        }
    }

    fn take(&mut self, event: Event) {
        let now = self.clock.now();
        for effect in self.machine.on_event(event, now) {
            self.effects.perform(effect, now);
        }
    }

    fn report(&self, bus: &Bus) {
        let state = self.machine.state(SHOWN);
        let count = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
        self.metrics.pods.set(count(state.pods));
        self.metrics.launching.set(count(state.launching));
        self.state.store(json!({
            "leads": true,
            "busIsConnected": bus.is_connected(),
            "pods": state.pods,
            "launching": state.launching,
            "someLaunching": state.some_launching.iter().map(describe).collect::<Vec<_>>(),
        }));
    }
}

/// A pod as `/state` shows it.
fn describe(launch: &LaunchState<'_>) -> Value {
    let waiting = launch.waiting_for.iter();
    let waiting = waiting.map(|it| (it.container.to_string(), json!(it.why)));
    json!({
        "pod": launch.pod.to_string(),
        "level": launch.level.map(|level| level.key()),
        "waitingFor": waiting.collect::<Map<_, _>>(),
        "isWriting": launch.is_writing,
    })
}

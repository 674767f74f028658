//! The leader's loop: wait, decide, act, report.
//!
//! Owns what the leader knows and the tasks it has under way. Decisions are `barrier_rules::plan`'s. There is nothing
//! to store: the pod and its ConfigMap are the store.

mod act;
mod take;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api_client::WatchEvent;
use barrier_rules::{MapView, plan};
use bus::{Bus, Delivery};
use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use model::{
    ids::{PodKey, PodUid},
    launch::{BarrierMap, Started},
};
use serde_json::{Value, json};
use service_kit::{StateCell, WakeSet, clock, instant_of};
use tokio::{
    task::{JoinError, JoinSet},
    time::Instant,
};

use crate::{
    cluster::{Cluster, WriteError},
    metrics::Metrics,
    tracked::Tracked,
};

/// How many launching pods are shown at `/state`: it is written anew with every event.
const SHOWN: usize = 50;

/// Everything that can wake the leader.
enum Event {
    /// A pod was seen, or the watch began anew.
    Pod(Box<WatchEvent<Pod>>),
    /// A ConfigMap was seen, or the watch began anew.
    Map(Box<WatchEvent<ConfigMap>>),
    /// A write for a pod was answered.
    Written(PodKey, PodUid, Result<Written, WriteError>),
    /// A pod's ConfigMap was fetched, for a write met another one than was known.
    Fetched(PodKey, PodUid, Result<Option<ConfigMap>, WriteError>),
    /// A node started a container.
    Started(Delivery<Started, ()>),
    /// An event was told, or given up.
    Told,
    /// A deadline came.
    Tick,
}

/// What a write left behind.
enum Written {
    Map(Box<ConfigMap>),
    NoMap,
    Pod(Box<Pod>),
    /// The pod of that uid is no more.
    NoPod,
    /// The API server has too much to do with the object just now.
    Busy,
}

/// Why the leader cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriverError {
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

/// What happens outside; none of it ever ends.
struct Sources<P, M, S> {
    pods: P,
    maps: M,
    starts: S,
}

/// The leader.
pub(crate) struct Driver {
    cluster: Cluster,
    metrics: Metrics,
    state: StateCell,
    stuck_after: Duration,
    tracked: BTreeMap<PodKey, Tracked>,
    maps: BTreeMap<PodKey, BarrierMap>,
    /// Until the first list of ConfigMaps is whole, a missing one says nothing.
    are_maps_listed: bool,
    /// While a watch lists: those not listed yet, which are gone when it is done.
    unlisted_pods: BTreeSet<PodKey>,
    unlisted_maps: BTreeSet<PodKey>,
    /// When to plan again for whom.
    wakes: WakeSet<PodKey>,
    launching: BTreeSet<PodKey>,
    /// Requests under way; each ends as an event.
    requests: JoinSet<Event>,
}

// === impl Driver ===

impl Driver {
    pub(crate) fn new(
        cluster: Cluster,
        metrics: Metrics,
        state: StateCell,
        stuck_after: Duration,
    ) -> Self {
        Self {
            cluster,
            metrics,
            state,
            stuck_after,
            tracked: BTreeMap::new(),
            maps: BTreeMap::new(),
            are_maps_listed: false,
            unlisted_pods: BTreeSet::new(),
            unlisted_maps: BTreeSet::new(),
            wakes: WakeSet::new(),
            launching: BTreeSet::new(),
            requests: JoinSet::new(),
        }
    }

    /// Leads until it is dropped.
    ///
    /// # Errors
    /// The bus refuses the subscription, or what should never end has ended.
    pub(crate) async fn run(mut self, bus: &Bus) -> Result<(), DriverError> {
        let starts = bus.watch_started().await.map_err(DriverError::Subscribe)?;
        let starts = stream::unfold(starts, async |mut starts| {
            Some((starts.next().await?, starts))
        });
        let mut sources = Sources {
            pods: Box::pin(self.cluster.watch_pods()),
            maps: Box::pin(self.cluster.watch_maps()),
            starts: Box::pin(starts),
        };
        loop {
            let event = self.wait(&mut sources).await?;
            self.step(event);
            self.report(bus);
        }
    }

    /// Waits for the next thing to happen.
    async fn wait<P, M, S>(&mut self, sources: &mut Sources<P, M, S>) -> Result<Event, DriverError>
    where
        P: Stream<Item = WatchEvent<Pod>> + Unpin,
        M: Stream<Item = WatchEvent<ConfigMap>> + Unpin,
        S: Stream<Item = Delivery<Started, ()>> + Unpin,
    {
        let due = self.wakes.wait();
        Ok(tokio::select! {
            pod = sources.pods.next() => Event::Pod(Box::new(pod.ok_or(DriverError::Pods)?)),
            map = sources.maps.next() => Event::Map(Box::new(map.ok_or(DriverError::Maps)?)),
            started = sources.starts.next() => Event::Started(started.ok_or(DriverError::Starts)?),
            Some(ended) = self.requests.join_next() => ended.map_err(DriverError::Request)?,
            () = due => Event::Tick,
        })
    }

    fn step(&mut self, event: Event) {
        for pod in self.take(event) {
            self.advance(&pod);
        }
    }

    /// Takes an event in and says which pods it may concern.
    fn take(&mut self, event: Event) -> BTreeSet<PodKey> {
        match event {
            Event::Pod(event) => self.on_pod(*event),
            Event::Map(event) => self.on_map(*event),
            Event::Written(pod, uid, result) => self.on_written(pod, &uid, result),
            Event::Fetched(pod, uid, result) => self.on_fetched(pod, &uid, result),
            Event::Started(delivery) => self.on_started(delivery),
            Event::Told => BTreeSet::new(),
            Event::Tick => self.on_tick(Instant::now()),
        }
    }

    /// Decides what a pod needs now, and begins it.
    fn advance(&mut self, pod: &PodKey) {
        let now = clock::now();
        let map = self.map_of(pod);
        let Some(tracked) = self.tracked.get_mut(pod) else {
            self.launching.remove(pod);
            self.wakes.set(pod, None);
            return;
        };
        if tracked.is_writing {
            return;
        }
        let plan = plan(&tracked.snapshot(&map, self.stuck_after), now);
        tracked.note(&plan.stage, &self.metrics, now);
        if tracked.is_launching() {
            self.launching.insert(pod.clone());
        } else {
            self.launching.remove(pod);
        }
        let wake_at = plan.wake_at.map(|at| instant_of(at, now, Instant::now()));
        self.wakes.set(pod, wake_at);
        self.tell(pod, plan.events, now);
        if let Some(write) = plan.write {
            self.write(pod, write);
        }
    }

    fn map_of(&self, pod: &PodKey) -> MapView {
        match self.maps.get(pod) {
            Some(map) => MapView::Present(map.clone()),
            None if self.are_maps_listed => MapView::Absent,
            None => MapView::Unknown,
        }
    }

    fn report(&self, bus: &Bus) {
        let count = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
        self.metrics.pods.set(count(self.tracked.len()));
        self.metrics.launching.set(count(self.launching.len()));
        self.state.store(self.describe(bus));
    }

    /// What the leader shows at `/state`.
    fn describe(&self, bus: &Bus) -> Value {
        let launching = self.launching.iter().take(SHOWN);
        let launching = launching.filter_map(|pod| Some(self.tracked.get(pod)?.describe()));
        json!({
            "leads": true,
            "busIsConnected": bus.is_connected(),
            "pods": self.tracked.len(),
            "launching": self.launching.len(),
            "someLaunching": launching.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests;

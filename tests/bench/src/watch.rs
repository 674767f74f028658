//! This program's two watches, on the pods and on the requests of its namespace.
//!
//! They run in tasks of their own, so that a sight has the time of its coming and not of its being asked for.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::Space;
use futures::StreamExt;
use kube::{
    Api, Resource,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, timeout},
};

use crate::seen::{Change, Seen};

pub(crate) struct Watch {
    changes: mpsc::UnboundedReceiver<(Instant, Change)>,
    pub(crate) seen: Seen,
    /// Ended with the watch.
    _tasks: JoinSet<()>,
}

// === impl Watch ===

impl Watch {
    /// From its return on nothing is missed.
    pub(crate) async fn begin(space: &Space) -> Self {
        let (tx, changes) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        let pods = |pod| Change::Pod(Box::new(pod));
        follow(&mut tasks, space.pods(), tx.clone(), pods).await;
        let requests = |request| Change::Request(Box::new(request));
        follow(&mut tasks, space.requests(), tx, requests).await;
        Self {
            changes,
            seen: Seen::default(),
            _tasks: tasks,
        }
    }

    /// Waits until what was seen has it.
    pub(crate) async fn until<T>(
        &mut self,
        what: &str,
        within: Duration,
        look: impl Fn(&Seen) -> Option<T>,
    ) -> Result<T> {
        let found = timeout(within, async {
            loop {
                if let Some(found) = look(&self.seen) {
                    return Ok(found);
                }
                let change = self.changes.recv().await;
                let (at, change) = change.context("the watches have ended")?;
                self.seen.note(at, change);
            }
        });
        let found = found.await;
        found.with_context(|| format!("waited {within:?} in vain for {what}"))?
    }
}

async fn follow<K>(
    tasks: &mut JoinSet<()>,
    api: Api<K>,
    tx: mpsc::UnboundedSender<(Instant, Change)>,
    change: impl Fn(K) -> Change + Send + 'static,
) where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let mut events = watcher(api, watcher::Config::default())
        .default_backoff()
        .boxed();
    // The namespace is new: the first list is empty.
    while !matches!(events.next().await, Some(Ok(watcher::Event::InitDone))) {}
    tasks.spawn(async move {
        let mut objects = events.applied_objects().boxed();
        while let Some(object) = objects.next().await {
            // A broken watch begins anew by itself, and lists what it missed.
            let Ok(object) = object else { continue };
            if tx.send((Instant::now(), change(object))).is_err() {
                return;
            }
        }
    });
}

//! What happens to a request and its pod, told as it happens.

use anyhow::{Context, Result};
use futures::{StreamExt, stream::BoxStream};
use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Resource,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::{CONTAINERS, paper::Paper};
use crate::{
    pod::statuses,
    request::{is_completed, phase_of},
    space::Space,
};

type Changes<T> = BoxStream<'static, Result<T, watcher::Error>>;

/// A request and its pod.
pub(super) struct Watch {
    requests: Changes<ContainerRecreateRequest>,
    pods: Changes<Pod>,
    /// When the request was first seen.
    since: Option<Instant>,
    /// What was last told of each.
    told: Vec<(String, String)>,
}

impl Watch {
    /// Begins to watch, with the pod as it is now.
    pub(super) async fn start(
        space: &Space,
        pod: &str,
        request: &str,
        before: &Pod,
    ) -> Result<Self> {
        let mut watch = Self {
            requests: changes(space.requests(), request),
            pods: changes(space.pods(), pod),
            since: None,
            told: described(before),
        };
        // Its first word is the pod as it is.
        let _first = watch.pods.next().await.context("the watch has ended")?;
        Ok(watch)
    }

    /// Tells every change until the request has ended.
    pub(super) async fn until_completed(
        &mut self,
        paper: &Paper,
    ) -> Result<ContainerRecreateRequest> {
        loop {
            tokio::select! {
                Some(request) = self.requests.next() => {
                    let request = request?;
                    self.since.get_or_insert_with(Instant::now);
                    self.tell(paper, "request", of_request(&request));
                    if is_completed(&request) {
                        return Ok(request);
                    }
                }
                Some(pod) = self.pods.next() => {
                    for (container, state) in described(&pod?) {
                        self.tell(paper, &container, state);
                    }
                }
            }
        }
    }

    fn tell(&mut self, paper: &Paper, of: &str, state: String) {
        let last = self.told.iter_mut().find(|(known, _)| known == of);
        match last {
            Some((_, last)) if *last == state => return,
            Some((_, last)) => last.clone_from(&state),
            None => self.told.push((of.to_owned(), state.clone())),
        }
        let seconds = self
            .since
            .map_or(0.0, |since| since.elapsed().as_secs_f64());
        paper.line(&format!("{seconds:>6.2} s  {of:<8} {state}"));
    }
}

fn changes<T>(api: Api<T>, name: &str) -> Changes<T>
where
    T: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let only = watcher::Config::default().fields(&format!("metadata.name={name}"));
    watcher(api, only)
        .applied_objects()
        .default_backoff()
        .boxed()
}

/// `Recreating   app: Pending`
fn of_request(request: &ContainerRecreateRequest) -> String {
    let phase = match phase_of(request) {
        "" => "admitted",
        phase => phase,
    };
    let states = request
        .status
        .iter()
        .flat_map(|status| &status.container_recreate_states);
    let states: Vec<_> = states
        .map(|state| format!("{}: {}", state.name, state.phase))
        .collect();
    format!("{phase:<12} {}", states.join(", "))
        .trim_end()
        .to_owned()
}

/// Each container with its state.
fn described(pod: &Pod) -> Vec<(String, String)> {
    let known = statuses(pod)
        .iter()
        .filter(|status| CONTAINERS.contains(&status.name.as_str()));
    let each = known.map(|status| {
        let state = status.state.clone().unwrap_or_default();
        let id = status.container_id.clone().unwrap_or_default();
        let id: String = id
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .chars()
            .take(12)
            .collect();
        let word = if let Some(ended) = state.terminated {
            format!("{id}  ended with exit code {}", ended.exit_code)
        } else if state.running.is_some() {
            let restarts = status.restart_count;
            format!("{id}  running, restarts {restarts}")
        } else {
            format!(
                "{id}  {}",
                state
                    .waiting
                    .and_then(|waiting| waiting.reason)
                    .unwrap_or_default()
            )
        };
        (status.name.clone(), word)
    });
    each.collect()
}

//! What was seen of pods and requests, and when: by one clock, so that the times can be compared. Pure.

use std::collections::BTreeMap;

use e2e::{is_completed, state_of};
use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::time::Instant;

pub(crate) enum Change {
    Request(Box<ContainerRecreateRequest>),
    Pod(Box<Pod>),
}

/// The first sight of everything that the phases wait for.
#[derive(Default)]
pub(crate) struct Seen {
    /// By name.
    completed: BTreeMap<String, (Instant, ContainerRecreateRequest)>,
    /// By pod and container: the ids that were ready, the oldest first.
    ready: BTreeMap<(String, String), Vec<(String, Instant)>>,
}

// === impl Seen ===

impl Seen {
    pub(crate) fn note(&mut self, at: Instant, change: Change) {
        match change {
            Change::Request(request) if is_completed(&request) => {
                let name = request.name_any();
                self.completed.entry(name).or_insert((at, *request));
            }
            Change::Request(_) => {}
            Change::Pod(pod) => self.note_pod(at, &pod),
        }
    }

    fn note_pod(&mut self, at: Instant, pod: &Pod) {
        let status = pod.status.as_ref();
        let containers = status.and_then(|status| status.container_statuses.as_deref());
        for container in containers.unwrap_or_default() {
            let key = (pod.name_any(), container.name.clone());
            let ids = self.ready.entry(key).or_default();
            let id = container.container_id.clone().unwrap_or_default();
            if container.ready && ids.iter().all(|(known, _)| *known != id) {
                ids.push((id, at));
            }
        }
    }

    pub(crate) fn completed(&self, name: &str) -> Option<&(Instant, ContainerRecreateRequest)> {
        self.completed.get(name)
    }

    /// Whether a request has ended well for that container.
    pub(crate) fn has_succeeded(&self, name: &str, container: &str) -> bool {
        let request = self.completed(name).map(|(_, request)| request);
        let state = request.and_then(|request| state_of(request, container));
        state.is_some_and(|state| state.phase == "Succeeded")
    }

    /// The `count`-th instance of a container that was ready, counted from one: its id and since when.
    pub(crate) fn ready(
        &self,
        pod: &str,
        container: &str,
        count: usize,
    ) -> Option<&(String, Instant)> {
        let key = (pod.to_owned(), container.to_owned());
        self.ready.get(&key)?.get(count.checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn pod(id: &str, ready: bool) -> Change {
        let status = json!({
            "name": "main", "containerID": id, "ready": ready, "restartCount": 0,
            "image": "busybox", "imageID": "",
        });
        let pod =
            json!({ "metadata": { "name": "p" }, "status": { "containerStatuses": [status] } });
        Change::Pod(serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn an_instance_counts_from_when_it_was_first_ready() {
        let start = Instant::now();
        let mut seen = Seen::default();
        let changes = [("a", true), ("a", true), ("b", false), ("b", true)];
        for (second, (id, ready)) in (0..).zip(changes) {
            seen.note(start + Duration::from_secs(second), pod(id, ready));
        }
        let at = |second| start + Duration::from_secs(second);
        assert_eq!(seen.ready("p", "main", 1), Some(&("a".to_owned(), at(0))));
        assert_eq!(seen.ready("p", "main", 2), Some(&("b".to_owned(), at(3))));
        assert_eq!(seen.ready("p", "main", 3), None);
        assert_eq!(seen.ready("p", "other", 1), None);
    }
}

//! Watches that never end and that no object can stall.
//!
//! Owns the start of a watch, its retries and objects that cannot be decoded. The caller decides which objects to
//! watch.

use std::{fmt::Debug, future::ready};

use futures::{Stream, StreamExt};
use kube::{
    Api, Resource, ResourceExt,
    core::DeserializeGuard,
    runtime::{WatchStreamExt, watcher},
};
use model::error_chain::ErrorChain;
use serde::de::DeserializeOwned;
use tracing::warn;

/// An event of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent<K> {
    /// A list begins: known objects that it does not show are gone at its end.
    ListBegun,
    /// An object, listed or changed.
    Seen(K),
    /// An object, listed or changed, whose fields do not decode.
    Unreadable(ObjectKey),
    /// A deleted object.
    Gone(ObjectKey),
    ListEnded,
}

/// Identity of an object of a known kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectKey {
    /// Empty for an object without a namespace.
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

// === impl ObjectKey ===

impl ObjectKey {
    /// The identity in the metadata of `object`.
    pub fn of(object: &impl Resource) -> Self {
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
        }
    }
}

/// An endless watch; failures are logged with the name `what` and retried with back-off.
///
/// An object that does not decode gives [`WatchEvent::Unreadable`]. Without the guard it would end the watch, at every
/// retry.
pub fn watch<K>(
    api: Api<DeserializeGuard<K>>,
    config: watcher::Config,
    what: &'static str,
) -> impl Stream<Item = WatchEvent<K>> + Send + use<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let events = watcher(api, config).default_backoff();
    events.filter_map(move |event| {
        let event = event
            .inspect_err(|error| warn!(what, error = %ErrorChain(error), "Watch failed; retrying"));
        ready(event.ok().map(|event| watch_event(event, what)))
    })
}

/// The configuration of a watch of all objects. Streamed lists cost the API server less memory than pages; old servers
/// do not support them.
pub fn watch_config(streaming_lists: bool) -> watcher::Config {
    let config = watcher::Config::default();
    if streaming_lists {
        config.streaming_lists()
    } else {
        config
    }
}

fn watch_event<K: Resource>(
    event: watcher::Event<DeserializeGuard<K>>,
    what: &'static str,
) -> WatchEvent<K> {
    match event {
        watcher::Event::Init => WatchEvent::ListBegun,
        watcher::Event::InitDone => WatchEvent::ListEnded,
        watcher::Event::Delete(object) => WatchEvent::Gone(ObjectKey::of(&object)),
        watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
            let key = ObjectKey::of(&object);
            match object.0 {
                Ok(object) => WatchEvent::Seen(object),
                Err(error) => {
                    let (ns, name) = (&key.namespace, &key.name);
                    warn!(what, ns, name, error = %ErrorChain(&error), "Object cannot be decoded");
                    WatchEvent::Unreadable(key)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    fn object(started_at: &str) -> DeserializeGuard<Pod> {
        let object = json!({
            "metadata": { "namespace": "shop", "name": "web", "uid": "1" },
            "status": { "startTime": started_at },
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn an_object_that_does_not_decode_is_an_event_of_its_own() {
        let event = |event| watch_event(event, "pods");
        let readable = event(watcher::Event::Apply(object("2026-01-01T00:00:00Z")));
        assert!(matches!(readable, WatchEvent::Seen(_)));
        // The latest time of Kubernetes is later than ours.
        let late = || object("9999-12-31T23:59:59Z");
        let key = ObjectKey {
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            uid: "1".to_owned(),
        };
        let unreadable = WatchEvent::Unreadable(key.clone());
        assert_eq!(event(watcher::Event::Apply(late())), unreadable);
        assert_eq!(event(watcher::Event::InitApply(late())), unreadable);
        assert_eq!(event(watcher::Event::Delete(late())), WatchEvent::Gone(key));
    }
}

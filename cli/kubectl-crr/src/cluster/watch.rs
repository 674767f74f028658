//! Watches: they go on through every trouble that passes, and end with the trouble that does not.

use std::{fmt::Debug, future};

use futures::{Stream, StreamExt};
use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Resource,
    core::Status,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;

use super::{Cluster, REQUESTS};
use crate::failure::{Failure, chain};

/// The version that a watch began at is not kept any more: it begins anew, and nothing is missed.
const GONE: u16 = 410;

/// What a watch tells.
#[derive(Clone, Debug)]
pub(crate) enum News<K> {
    /// All there is: at the beginning, and after each break.
    All(Vec<K>),
    Is(K),
    Gone(K),
    /// It broke, says why, and begins anew by itself.
    Broken(String),
}

/// What a watch knows of what it is in the middle of.
struct Watch<K> {
    needs: String,
    listed: Vec<K>,
    told: Option<String>,
}

// === impl Cluster: watches ===

impl Cluster {
    /// One request by its name.
    pub(crate) fn watch_request(
        &self,
        name: &str,
    ) -> impl Stream<Item = Result<News<ContainerRecreateRequest>, Failure>> + use<> {
        let which = watcher::Config::default().fields(&format!("metadata.name={name}"));
        news(self.requests(), which, self.needs(REQUESTS))
    }

    /// The requests with these labels.
    pub(crate) fn watch_requests(
        &self,
        selector: &str,
    ) -> impl Stream<Item = Result<News<ContainerRecreateRequest>, Failure>> + use<> {
        let which = watcher::Config::default().labels(selector);
        news(self.requests(), which, self.needs(REQUESTS))
    }

    /// The pods with these labels.
    pub(crate) fn watch_pods(
        &self,
        selector: &str,
    ) -> impl Stream<Item = Result<News<Pod>, Failure>> + use<> {
        let which = watcher::Config::default().labels(selector);
        news(self.pods(), which, self.needs("pods"))
    }

    fn needs(&self, resource: &str) -> String {
        format!(
            "list and watch on {resource} in namespace {}",
            self.namespace
        )
    }
}

fn news<K>(
    api: Api<K>,
    which: watcher::Config,
    needs: String,
) -> impl Stream<Item = Result<News<K>, Failure>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let watch = Watch {
        needs,
        listed: Vec::new(),
        told: None,
    };
    watcher(api, which)
        .default_backoff()
        .scan(watch, |watch, event| {
            future::ready(Some(watch.heard(event)))
        })
        .filter_map(future::ready)
}

// === impl Watch ===

impl<K> Watch<K> {
    fn heard(&mut self, event: watcher::Result<Event<K>>) -> Option<Result<News<K>, Failure>> {
        let event = match event {
            Ok(event) => event,
            Err(error) => return self.trouble(error),
        };
        self.told = None;
        let news = match event {
            Event::Init => {
                self.listed.clear();
                return None;
            }
            Event::InitApply(object) => {
                self.listed.push(object);
                return None;
            }
            Event::InitDone => News::All(std::mem::take(&mut self.listed)),
            Event::Apply(object) => News::Is(object),
            Event::Delete(object) => News::Gone(object),
        };
        Some(Ok(news))
    }

    /// An answer that will be the same next time ends it; the same trouble again is told once.
    fn trouble(&mut self, error: watcher::Error) -> Option<Result<News<K>, Failure>> {
        match status_of(&error) {
            Some(status) if status.code == GONE => return None,
            Some(status) if matches!(status.code, 400..=404) => {
                return Some(Err(Failure::Denied {
                    needs: self.needs.clone(),
                    status: Box::new(status.clone()),
                }));
            }
            Some(_) | None => {}
        }
        let told = chain(&error);
        let is_new = self.told.as_ref() != Some(&told);
        self.told = Some(told.clone());
        is_new.then_some(Ok(News::Broken(told)))
    }
}

fn status_of(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::WatchError(status) => Some(status),
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => Some(status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Watch<u8> {
        Watch {
            needs: "list and watch on pods in namespace x".to_owned(),
            listed: Vec::new(),
            told: None,
        }
    }

    fn refused(code: u16) -> watcher::Error {
        let status = Status::failure("no", "Because").with_code(code);
        watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()))
    }

    #[test]
    fn what_will_not_pass_ends_the_watch() {
        for (code, is_end) in [(400, true), (401, true), (403, true), (404, true)]
            .into_iter()
            .chain([(409, false), (429, false), (500, false), (503, false)])
        {
            let told = watch().heard(Err(refused(code)));
            assert_eq!(matches!(told, Some(Err(_))), is_end, "{code}");
        }
        assert!(watch().heard(Err(refused(GONE))).is_none());
    }

    #[test]
    fn the_same_trouble_is_told_once_until_it_has_passed() {
        let mut watch = watch();
        let mut told = |event| watch.heard(event).is_some();
        assert!(told(Err(refused(500))));
        assert!(!told(Err(refused(500))));
        assert!(told(Err(refused(503))));
        assert!(told(Ok(Event::Apply(1))));
        assert!(told(Err(refused(503))));
    }

    #[test]
    fn a_list_is_told_when_it_is_whole() {
        let mut watch = watch();
        for event in [
            Event::Init,
            Event::InitApply(1),
            Event::Init,
            Event::InitApply(2),
        ] {
            assert!(watch.heard(Ok(event)).is_none());
        }
        let told = watch.heard(Ok(Event::InitDone));
        assert!(matches!(told, Some(Ok(News::All(all))) if all == [2]));
    }
}

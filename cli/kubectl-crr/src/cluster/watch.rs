//! Watches: they survive errors that may pass, and end at the first that a retry cannot cure.

use std::future;

use futures::{Stream, StreamExt};
use kube::{
    core::Status,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};

use super::{Cluster, Object};
use crate::failure::{Failure, Result};
use model::error_chain::ErrorChain;

/// Code for a resourceVersion that has expired: the watch restarts with a list, and nothing is missed.
const GONE: u16 = 410;

#[derive(Clone, Debug)]
pub(crate) enum News<K> {
    /// All objects: at the beginning, and after each interruption.
    All(Vec<K>),
    Is(K),
    Gone(K),
    /// The watch was interrupted for this reason and restarts by itself.
    Broken(String),
}

struct Watch<K> {
    /// Rights that it takes.
    needs: String,
    listed: Vec<K>,
    /// The last error reported.
    reported: Option<String>,
}

// === impl Cluster: watches ===

impl Cluster {
    pub(crate) fn watch<K: Object>(
        &self,
        which: watcher::Config,
    ) -> impl Stream<Item = Result<News<K>>> + use<K> {
        let (resource, group) = (K::plural(&()), K::group(&()));
        let dot = if group.is_empty() { "" } else { "." };
        let namespace = &self.namespace;
        let watch = Watch {
            needs: format!("list and watch on {resource}{dot}{group} in namespace {namespace}"),
            listed: Vec::new(),
            reported: None,
        };
        watcher(self.api(), which)
            .default_backoff()
            .scan(watch, |watch, event| {
                future::ready(Some(watch.on_event(event)))
            })
            .filter_map(future::ready)
    }
}

// === impl Watch ===

impl<K> Watch<K> {
    fn on_event(&mut self, event: watcher::Result<Event<K>>) -> Option<Result<News<K>>> {
        let event = match event {
            Ok(event) => event,
            Err(error) => return self.on_error(&error),
        };
        self.reported = None;
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

    /// Ends the watch if a retry cannot succeed; a repeated error is reported once.
    fn on_error(&mut self, error: &watcher::Error) -> Option<Result<News<K>>> {
        match status_of(error) {
            Some(status) if status.code == GONE => return None,
            Some(status) if matches!(status.code, 400..=404) => {
                return Some(Err(Failure::denied(&self.needs, status)));
            }
            Some(_) | None => {}
        }
        let why = ErrorChain(error).to_string();
        let is_new = self.reported.as_ref() != Some(&why);
        self.reported = Some(why.clone());
        is_new.then_some(Ok(News::Broken(why)))
    }
}

fn status_of(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::WatchError(status)
        | watcher::Error::InitialListFailed(kube::Error::Api(status))
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
            reported: None,
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
            let told = watch().on_event(Err(refused(code)));
            assert_eq!(matches!(told, Some(Err(_))), is_end, "{code}");
        }
        assert!(watch().on_event(Err(refused(GONE))).is_none());
    }

    #[test]
    fn the_same_trouble_is_told_once_until_it_has_passed() {
        let mut watch = watch();
        let mut told = |event| watch.on_event(event).is_some();
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
            assert!(watch.on_event(Ok(event)).is_none());
        }
        let told = watch.on_event(Ok(Event::InitDone));
        assert!(matches!(told, Some(Ok(News::All(all))) if all == [2]));
    }
}

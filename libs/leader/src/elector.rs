//! The loop around a claim: one watch of the Lease, and its writes.
//!
//! Owns the requests. A standby only watches; a leader writes once per `renew_every`. After every failed write there is
//! a pause, and leadership ends on time whatever the error.

use std::{
    ops::ControlFlow,
    pin::{Pin, pin},
    time::Duration,
};

use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, ResourceExt,
    api::{ObjectMeta, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use model::{error_chain::ErrorChain, retry::Doubling, watch::Version};
use tokio::{
    select,
    sync::watch,
    time::{Instant, sleep_until, timeout, timeout_at},
};
use tracing::{debug, info, warn};

use crate::{Claim, Leadership, Step, Timing};

/// Deadline of one request; shorter than the time after which a leader gives up.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Pauses after failed writes. The API server may reject writes for hours (a full etcd, an unavailable webhook, a
/// missing permission), and every replica retries.
const PAUSES: Doubling = Doubling::new(Duration::from_millis(500), Duration::from_secs(5));

/// Deadline of a release. Together with a write that is still under way, shorter than the shutdown of a service.
const RELEASE_WITHIN: Duration = Duration::from_secs(2);
const RELEASE_TRIES: u32 = 2;

/// Why the Lease was not written.
#[derive(Debug, thiserror::Error)]
enum LeaseError {
    #[error("failed to write the lease")]
    Write(#[source] Box<kube::Error>),
    #[error("the write of the lease was not answered in time")]
    TimedOut,
}

/// A replica that contends for a Lease.
pub struct Elector {
    api: Api<Lease>,
    name: String,
    identity: String,
    timing: Timing,
    now: fn() -> Timestamp,
    held: watch::Sender<bool>,
    /// The Lease as last read or written; its resourceVersion guards the next write.
    lease: Option<Lease>,
    claim: Claim,
    /// A write failed and the Lease was not read since: the server may have accepted the write.
    is_unsure: bool,
    /// Number of consecutive failed writes.
    failures: u32,
    paused_until: Instant,
}

// === impl LeaseError ===

impl LeaseError {
    /// True if another replica wrote first.
    fn is_conflict(&self) -> bool {
        let Self::Write(error) = self else {
            return false;
        };
        matches!(&**error, kube::Error::Api(status) if status.code == 409)
    }
}

// === impl Elector ===

impl Elector {
    /// `identity`: unique among the replicas, such as the pod's name. `now`: clock of the times in the Lease, which no
    /// decision uses.
    pub fn new(
        api: Api<Lease>,
        name: impl Into<String>,
        identity: impl Into<String>,
        timing: Timing,
        now: fn() -> Timestamp,
    ) -> Self {
        let identity = identity.into();
        let claim = Claim::new(identity.clone(), timing);
        let name = name.into();
        Self {
            api,
            name,
            identity,
            timing,
            now,
            held: watch::Sender::new(false),
            lease: None,
            claim,
            is_unsure: false,
            failures: 0,
            paused_until: Instant::now(),
        }
    }

    /// The leadership of this replica, for the tasks that depend on it.
    pub fn leadership(&self) -> Leadership {
        Leadership(self.held.subscribe())
    }

    /// Contends until `end` is ready, then releases the Lease, so that another replica can take it at once.
    pub async fn run(mut self, end: impl Future<Output = ()>) {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", self.name));
        let events = watcher(self.api.clone(), config).default_backoff();
        let mut events =
            pin!(events.map_err(
                |error| warn!(error = %ErrorChain(&error), "Lease watch failed; retrying")
            ));
        let mut end = pin!(end);
        loop {
            let now = Instant::now();
            let wake_at = match self.claim.next_step(now) {
                Step::WaitUntil(moment) => moment,
                Step::GiveUp => {
                    warn!(
                        lease = self.name,
                        "Lease was not renewed in time; no longer leading"
                    );
                    self.claim.give_up(now);
                    self.publish();
                    continue;
                }
                Step::Take | Step::Renew if now < self.paused_until => self.paused_until,
                Step::Take | Step::Renew => match self.attempt(end.as_mut()).await {
                    ControlFlow::Continue(()) => continue,
                    ControlFlow::Break(()) => break,
                },
            };
            let give_up_at = self.claim.gives_up_at();
            let wake_at = give_up_at.map_or(wake_at, |at| at.min(wake_at));
            select! {
                () = &mut end => break,
                () = sleep_until(wake_at) => {}
                event = events.next() => if let Some(Ok(event)) = event { self.on_event(event) },
            }
        }
        if timeout(RELEASE_WITHIN, self.release()).await.is_err() {
            warn!(lease = self.name, "Lease was not released; it will expire");
        }
    }

    fn on_event(&mut self, event: watcher::Event<Lease>) {
        match event {
            watcher::Event::Apply(lease) | watcher::Event::InitApply(lease) => self.read(lease),
            watcher::Event::Delete(_) => {
                self.lease = None;
                self.claim.observe_absence();
            }
            watcher::Event::InitDone if self.lease.is_none() => self.claim.observe_absence(),
            watcher::Event::Init | watcher::Event::InitDone => {}
        }
        self.publish();
    }

    fn read(&mut self, lease: Lease) {
        let known = self.lease.as_ref();
        if known.is_some_and(|known| version(known) > version(&lease)) {
            return;
        }
        let spec = lease.spec.as_ref();
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
        let duration = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        self.claim.observe(
            spec.and_then(|spec| spec.holder_identity.as_deref()),
            &lease.resource_version().unwrap_or_default(),
            duration.map(Duration::from_secs),
            Instant::now(),
        );
        self.lease = Some(lease);
    }

    /// Writes the Lease, and reads it if that failed. Breaks at `end`, but only after the write: its result decides
    /// whether there is a Lease to release.
    async fn attempt(&mut self, mut end: Pin<&mut impl Future<Output = ()>>) -> ControlFlow<()> {
        let sent_at = Instant::now();
        let (result, flow) = {
            let mut write = pin!(self.put(self.renewed(&self.identity)));
            select! {
                result = &mut write => (result, ControlFlow::Continue(())),
                () = &mut end => (write.await, ControlFlow::Break(())),
            }
        };
        match result {
            Ok(lease) => {
                self.lease = Some(lease);
                self.claim.written(sent_at);
                self.is_unsure = false;
                self.failures = 0;
                self.publish();
                return flow;
            }
            Err(error) => self.on_failure(&error),
        }
        // Giving up comes before every request.
        if flow.is_break() || self.claim.next_step(Instant::now()) == Step::GiveUp {
            return flow;
        }
        select! {
            () = &mut end => ControlFlow::Break(()),
            () = self.refresh() => ControlFlow::Continue(()),
        }
    }

    fn on_failure(&mut self, error: &LeaseError) {
        self.is_unsure = true;
        if error.is_conflict() && self.failures == 0 {
            debug!(lease = self.name, "Another replica wrote the Lease first");
        } else {
            warn!(lease = self.name, error = %ErrorChain(error), "Lease was not written; retrying");
            self.paused_until = Instant::now() + PAUSES.pause(self.failures);
        }
        self.failures = self.failures.saturating_add(1);
    }

    /// Reads the Lease after a failed write. The write is retried even if this fails too.
    async fn refresh(&mut self) {
        match timeout_at(self.answered_by(), self.api.get_opt(&self.name)).await {
            Ok(Ok(Some(lease))) => {
                self.is_unsure = false;
                self.read(lease);
            }
            Ok(Ok(None)) => {
                self.is_unsure = false;
                self.lease = None;
                self.claim.observe_absence();
            }
            Ok(Err(error)) => {
                debug!(lease = self.name, error = %ErrorChain(&error), "Lease was not read");
            }
            Err(_) => debug!(lease = self.name, "Lease was not read in time"),
        }
        self.publish();
    }

    /// Deadline of a request that is sent now; at most the end of leadership.
    fn answered_by(&self) -> Instant {
        let latest = Instant::now() + REQUEST_TIMEOUT;
        let give_up_at = self.claim.gives_up_at();
        give_up_at.map_or(latest, |at| at.min(latest))
    }

    /// Creates or replaces the Lease.
    async fn put(&self, lease: Lease) -> Result<Lease, LeaseError> {
        let parameters = PostParams::default();
        let request = async {
            match &self.lease {
                Some(_) => self.api.replace(&self.name, &parameters, &lease).await,
                None => self.api.create(&parameters, &lease).await,
            }
        };
        match timeout_at(self.answered_by(), request).await {
            Ok(result) => result.map_err(|error| LeaseError::Write(Box::new(error))),
            Err(_) => Err(LeaseError::TimedOut),
        }
    }

    /// The Lease to write, for this holder.
    fn renewed(&self, holder: &str) -> Lease {
        let now = MicroTime((self.now)());
        let known = self.lease.as_ref();
        let before = known
            .and_then(|lease| lease.spec.clone())
            .unwrap_or_default();
        let is_new_holder = before.holder_identity.as_deref() != Some(holder);
        let transitions = before.lease_transitions.unwrap_or(0);
        let spec = LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: i32::try_from(self.timing.duration.as_secs()).ok(),
            acquire_time: if is_new_holder {
                Some(now.clone())
            } else {
                before.acquire_time
            },
            renew_time: Some(now),
            lease_transitions: Some(transitions + i32::from(is_new_holder && !holder.is_empty())),
            ..LeaseSpec::default()
        };
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            resource_version: known.and_then(ResourceExt::resource_version),
            ..ObjectMeta::default()
        };
        Lease {
            metadata,
            spec: Some(spec),
        }
    }

    /// Publishes the state of the claim as leadership.
    fn publish(&self) {
        let is_ours = self.claim.is_ours();
        let changed = self
            .held
            .send_if_modified(|held| std::mem::replace(held, is_ours) != is_ours);
        if changed {
            let (lease, identity) = (&self.name, &self.identity);
            info!(lease, identity, leads = is_ours, "Leadership changed");
        }
    }

    /// Clears the holder, so that another replica can take the Lease at once. One request, unless the content of the
    /// Lease is unknown or it changed: then it is read first.
    async fn release(&mut self) {
        self.claim.give_up(Instant::now());
        self.publish();
        if self.is_unsure {
            self.refresh().await;
        }
        for _ in 0..RELEASE_TRIES {
            if !self.is_under_our_name() {
                return;
            }
            match self.put(self.renewed("")).await {
                Ok(_) => return info!(lease = self.name, "Lease released"),
                Err(error) if error.is_conflict() => self.refresh().await,
                Err(error) => {
                    return warn!(lease = self.name, error = %ErrorChain(&error), "Lease was not released; it will expire");
                }
            }
        }
        warn!(
            lease = self.name,
            "Lease was not released: other writers changed it"
        );
    }

    fn is_under_our_name(&self) -> bool {
        let spec = self.lease.as_ref().and_then(|lease| lease.spec.as_ref());
        let holder = spec.and_then(|spec| spec.holder_identity.as_ref());
        holder == Some(&self.identity)
    }
}

fn version(lease: &Lease) -> Version {
    Version::parse(&lease.resource_version().unwrap_or_default())
}

#[cfg(test)]
mod tests;

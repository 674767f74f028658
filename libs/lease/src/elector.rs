//! The loop around a claim: one watch on the Lease, and a write when the claim says so.
//!
//! Owns the requests. A standby reads nothing but its watch; a leader writes once per `renew_every`. Whatever keeps a
//! write from succeeding, the next comes after a pause, and leadership ends on time.

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
use tokio::{
    select,
    sync::watch,
    time::{Instant, sleep_until, timeout, timeout_at},
};
use tracing::{debug, info, warn};

use crate::{Claim, Leadership, Step, Timing};

/// A request that takes longer than this has failed: shorter than the time to give up.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Bounds of the pause after a write that failed; it doubles. The API server may refuse writes for hours (a full etcd,
/// a webhook that is away, a right that was lost) and still be asked by every replica.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(5)];

/// All requests of a release. With a write that is let end before, less than the services take to end.
const RELEASE_WITHIN: Duration = Duration::from_secs(2);
const RELEASE_TRIES: u32 = 2;

#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    #[error("failed to write the lease {name}")]
    Write {
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("the write of the lease {name} was not answered in time")]
    Slow { name: String },
}

/// Contends for one Lease on behalf of one replica.
pub struct Elector {
    api: Api<Lease>,
    name: String,
    identity: String,
    timing: Timing,
    now: fn() -> Timestamp,
    held: watch::Sender<bool>,
    /// As last read or written: its resourceVersion guards the next write.
    lease: Option<Lease>,
    claim: Claim,
    /// A write failed, and the lease was not read since: the server may have taken it.
    is_unsure: bool,
    /// Writes that failed one after the other.
    failures: u32,
    paused_until: Instant,
}

// === impl LeaseError ===

impl LeaseError {
    /// Another wrote first: no trouble.
    fn is_conflict(&self) -> bool {
        match self {
            Self::Write { source, .. } => {
                matches!(&**source, kube::Error::Api(status) if status.code == 409)
            }
            Self::Slow { .. } => false,
        }
    }
}

// === impl Elector ===

impl Elector {
    /// `identity` is unique among the replicas, such as the pod's name; `now` stamps the written times,
    /// which nobody decides by.
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

    pub fn leadership(&self) -> Leadership {
        Leadership(self.held.subscribe())
    }

    /// Contends until `end` is ready, then releases the lease so that another may take it at once.
    pub async fn run(mut self, end: impl Future<Output = ()>) {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", self.name));
        let events = watcher(self.api.clone(), config).default_backoff();
        let mut events = pin!(events.map_err(|error| warn!(%error, "Lease watch failed")));
        let mut end = pin!(end);
        loop {
            let now = Instant::now();
            let wake_at = match self.claim.next_step(now) {
                Step::WaitUntil(moment) => moment,
                Step::GiveUp => {
                    warn!(lease = self.name, "Lease could not be renewed in time");
                    self.claim.give_up(now);
                    self.tell();
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
            warn!(lease = self.name, "Lease not released: it will expire");
        }
    }

    fn on_event(&mut self, event: watcher::Event<Lease>) {
        match event {
            watcher::Event::Apply(lease) | watcher::Event::InitApply(lease) => self.read(lease),
            watcher::Event::Delete(_) => {
                self.lease = None;
                self.claim.observe_absence();
            }
            watcher::Event::Init => {}
            watcher::Event::InitDone => {
                if self.lease.is_none() {
                    self.claim.observe_absence();
                }
            }
        }
        self.tell();
    }

    fn read(&mut self, lease: Lease) {
        let is_older = self
            .lease
            .as_ref()
            .is_some_and(|known| version(known) > version(&lease));
        if is_older {
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

    /// Takes or renews, and looks what is there if that failed. Breaks when the end comes, but lets the write end
    /// first: only then is it known what there is to release.
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
                self.tell();
                return flow;
            }
            Err(error) => self.on_failure(&error),
        }
        // Once it is time to give up, nothing comes before that.
        if flow.is_break() || self.claim.next_step(Instant::now()) == Step::GiveUp {
            return flow;
        }
        select! {
            () = &mut end => ControlFlow::Break(()),
            () = self.refresh() => ControlFlow::Continue(()),
        }
    }

    fn on_failure(&mut self, error: &LeaseError) {
        let [shortest, longest] = PAUSES;
        let pause = shortest.saturating_mul(2_u32.saturating_pow(self.failures));
        self.is_unsure = true;
        if error.is_conflict() && self.failures == 0 {
            debug!(lease = self.name, "Another wrote the lease first");
        } else {
            warn!(lease = self.name, error = %error, "Lease was not written");
            self.paused_until = Instant::now() + pause.min(longest);
        }
        self.failures = self.failures.saturating_add(1);
    }

    /// After a failed write: looks what is there. If that fails too, the write will be tried again all the same.
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
            Ok(Err(_)) | Err(_) => debug!(lease = self.name, "Lease was not read either"),
        }
        self.tell();
    }

    /// When a request that leaves now has failed; never later than leadership ends.
    fn answered_by(&self) -> Instant {
        let latest = Instant::now() + REQUEST_TIMEOUT;
        let give_up_at = self.claim.gives_up_at();
        give_up_at.map_or(latest, |at| at.min(latest))
    }

    async fn put(&self, lease: Lease) -> Result<Lease, LeaseError> {
        let parameters = PostParams::default();
        let request = async {
            match &self.lease {
                Some(_) => self.api.replace(&self.name, &parameters, &lease).await,
                None => self.api.create(&parameters, &lease).await,
            }
        };
        match timeout_at(self.answered_by(), request).await {
            Ok(Ok(lease)) => Ok(lease),
            Ok(Err(source)) => Err(LeaseError::Write {
                name: self.name.clone(),
                source: Box::new(source),
            }),
            Err(_) => Err(LeaseError::Slow {
                name: self.name.clone(),
            }),
        }
    }

    fn renewed(&self, holder: &str) -> Lease {
        let now = MicroTime((self.now)());
        let before = self
            .lease
            .as_ref()
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
            resource_version: self.lease.as_ref().and_then(ResourceExt::resource_version),
            ..ObjectMeta::default()
        };
        Lease {
            metadata,
            spec: Some(spec),
        }
    }

    fn tell(&self) {
        let is_ours = self.claim.is_ours();
        let changed = self
            .held
            .send_if_modified(|held| std::mem::replace(held, is_ours) != is_ours);
        if changed {
            info!(
                lease = self.name,
                identity = self.identity,
                leads = is_ours,
                "Leadership changed"
            );
        }
    }

    /// Lets another take the lease at once. That is one request, unless it is not known what stands in the lease: then
    /// it is read first, and so it is when somebody has written it since.
    async fn release(&mut self) {
        self.claim.give_up(Instant::now());
        self.tell();
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
                    return warn!(lease = self.name, %error, "Lease not released: it will expire");
                }
            }
        }
        warn!(lease = self.name, "Lease not released: others write it too");
    }

    fn is_under_our_name(&self) -> bool {
        let spec = self.lease.as_ref().and_then(|lease| lease.spec.as_ref());
        let holder = spec.and_then(|spec| spec.holder_identity.as_ref());
        holder == Some(&self.identity)
    }
}

/// Resource versions of one object grow; what is no number counts as old.
fn version(lease: &Lease) -> u64 {
    lease
        .resource_version()
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;

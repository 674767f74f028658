//! The loop around a claim: one watch on the Lease, and a write when the claim says so.
//!
//! Owns the requests. A standby reads nothing but its watch; a leader writes once per `renew_every`.

use std::{pin::pin, time::Duration};

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
    time::{Instant, sleep_until, timeout},
};
use tracing::{debug, info, warn};

use crate::{Claim, Step, Timing};

/// A write that takes longer than this is tried again: shorter than the time to give up.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause after the API server could be neither written to nor read.
const RETRY_AFTER: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    #[error("failed to write the lease {name}")]
    Write {
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("writing the lease {name} took more than {WRITE_TIMEOUT:?}")]
    Slow { name: String },
}

/// Whether this replica leads; changes are waited for.
#[derive(Clone, Debug)]
pub struct Leadership(watch::Receiver<bool>);

impl Leadership {
    pub fn is_held(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once this replica leads; never when the elector is gone.
    pub async fn wait_held(&mut self) {
        if self.0.wait_for(|held| *held).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns once this replica does not lead, or the elector is gone.
    pub async fn wait_lost(&mut self) {
        // An elector that is gone renews nothing: lost as well.
        let _gone = self.0.wait_for(|held| !*held).await;
    }

    /// Works while this replica leads, and begins anew each time it comes to lead; `lost` is told each time that it no
    /// longer does. Returns with the work's own end.
    pub async fn lead<W: Future>(
        &mut self,
        mut work: impl FnMut() -> W,
        lost: impl Fn(),
    ) -> W::Output {
        loop {
            self.wait_held().await;
            info!("Leading");
            tokio::select! {
                end = work() => return end,
                () = self.wait_lost() => {
                    info!("No longer leading");
                    lost();
                }
            }
        }
    }
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
            let wake_at = match self.claim.next_step(Instant::now()) {
                Step::WaitUntil(moment) => moment,
                Step::GiveUp => {
                    warn!(lease = self.name, "Lease could not be renewed in time");
                    self.claim
                        .observe(Some("unknown"), "", None, Instant::now());
                    self.tell();
                    continue;
                }
                Step::Take | Step::Renew => {
                    // Cut off in the middle it has written or not: the release below copes with both.
                    select! {
                        () = &mut end => break,
                        () = self.write() => continue,
                    }
                }
            };
            select! {
                () = &mut end => break,
                () = sleep_until(wake_at) => {}
                event = events.next() => if let Some(Ok(event)) = event { self.on_event(event) },
            }
        }
        self.release().await;
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

    /// Takes or renews; a failure is tried again, until the claim gives up.
    async fn write(&mut self) {
        let sent_at = Instant::now();
        match self.put(self.renewed(&self.identity)).await {
            Ok(lease) => {
                self.lease = Some(lease);
                self.claim.written(sent_at);
            }
            Err(error) => {
                let is_conflict = matches!(&error, LeaseError::Write { source, .. }
                    if matches!(&**source, kube::Error::Api(status) if status.code == 409));
                if is_conflict {
                    debug!(lease = self.name, "Another wrote the lease first");
                } else {
                    warn!(lease = self.name, error = %error, "Lease was not written");
                }
                self.refresh().await;
            }
        }
        self.tell();
    }

    /// After a failed write: look what is there, and do not hammer.
    async fn refresh(&mut self) {
        match timeout(WRITE_TIMEOUT, self.api.get_opt(&self.name)).await {
            Ok(Ok(Some(lease))) => self.read(lease),
            Ok(Ok(None)) => {
                self.lease = None;
                self.claim.observe_absence();
            }
            // The API server is away; `write` logged it. Not hammering is all that is left to do.
            Ok(Err(_)) | Err(_) => sleep_until(Instant::now() + RETRY_AFTER).await,
        }
    }

    async fn put(&self, lease: Lease) -> Result<Lease, LeaseError> {
        let parameters = PostParams::default();
        let request = async {
            match &self.lease {
                Some(_) => self.api.replace(&self.name, &parameters, &lease).await,
                None => self.api.create(&parameters, &lease).await,
            }
        };
        match timeout(WRITE_TIMEOUT, request).await {
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

    async fn release(&mut self) {
        if !self.claim.is_ours() {
            return;
        }
        self.held.send_replace(false);
        match self.put(self.renewed("")).await {
            Ok(_) => info!(lease = self.name, "Lease released"),
            Err(error) => warn!(lease = self.name, %error, "Lease not released: it will expire"),
        }
    }
}

/// Resource versions of one object grow; what is no number counts as old.
fn version(lease: &Lease) -> u64 {
    lease
        .resource_version()
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

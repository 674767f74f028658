//! ContainerRecreateRequests as admission lets them through.

use std::time::Duration;

use model::{
    crr::{Crr, CrrContainer, CrrStatus, Fence, Strategy},
    ids::{ContainerName, CrrKey},
    labels,
    phase::CrrPhase,
};

use crate::{pod::web, time::wall};

/// A request under construction; [`CrrBuilder::build`] ends it.
#[derive(Clone, Debug)]
pub struct CrrBuilder(Crr);

/// Request `shop/restart` with uid `1`, created at the start of the test, for the first instances of these containers.
pub fn crr(containers: &[&str]) -> CrrBuilder {
    let containers = containers.iter().map(|name| CrrContainer {
        name: ContainerName::new(*name),
        pre_stop: None,
        hook_fault: None,
        fence: Some(Fence {
            container_id: format!("containerd://{name}-0")
                .parse()
                .expect("it is well formed"),
            restart_count: 0,
        }),
    });
    CrrBuilder(Crr {
        key: CrrKey {
            namespace: "shop".into(),
            name: "restart".into(),
        },
        uid: "1".into(),
        version: "1".to_owned(),
        created_at: wall(0),
        is_being_deleted: false,
        is_labelled_active: true,
        finalizers: Vec::new(),
        requested_by: None,
        respects_back_off: false,
        pod: web(),
        pod_uid: Some("pod-uid".into()),
        node: Some("node-1".into()),
        containers: containers.collect(),
        strategy: Strategy::default(),
        active_deadline: None,
        ttl_after_finished: None,
        status: CrrStatus::default(),
        traceparent: None,
    })
}

// === impl CrrBuilder ===

impl CrrBuilder {
    pub fn build(self) -> Crr {
        self.0
    }

    /// Changes the request in a way that has no word of its own.
    pub fn with(mut self, change: impl FnOnce(&mut Crr)) -> Self {
        change(&mut self.0);
        self
    }

    /// Changes the strategy.
    pub fn strategy(self, change: impl FnOnce(&mut Strategy)) -> Self {
        self.with(|crr| change(&mut crr.strategy))
    }

    pub fn named(self, name: &str, uid: &str) -> Self {
        self.with(|crr| {
            crr.key.name = name.into();
            crr.uid = uid.into();
        })
    }

    pub fn version(self, version: &str) -> Self {
        self.with(|crr| version.clone_into(&mut crr.version))
    }

    /// Created so long after the start of the test.
    pub fn created_at(self, milliseconds: u64) -> Self {
        self.with(|crr| crr.created_at = wall(milliseconds))
    }

    pub fn ordered(self) -> Self {
        self.strategy(|strategy| strategy.is_ordered = true)
    }

    pub fn forced(self) -> Self {
        self.strategy(|strategy| strategy.is_forced = true)
    }

    /// With `unreadyGracePeriodSeconds`.
    pub fn drained(self, grace: Duration) -> Self {
        self.strategy(|strategy| strategy.unready_grace = Some(grace))
    }

    /// With `activeDeadlineSeconds`.
    pub fn deadline(self, deadline: Duration) -> Self {
        self.with(|crr| crr.active_deadline = Some(deadline))
    }

    /// With `ttlSecondsAfterFinished`.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.with(|crr| crr.ttl_after_finished = Some(ttl))
    }

    pub fn phase(self, phase: CrrPhase) -> Self {
        self.with(|crr| crr.status.phase = Some(phase))
    }

    pub fn deleted(self) -> Self {
        self.with(|crr| crr.is_being_deleted = true)
    }

    /// With our finalizer: the pod's readiness may be held.
    pub fn held(self) -> Self {
        self.with(|crr| crr.finalizers.push(labels::UNREADY_ACQUIRED.to_owned()))
    }

    /// Without the label `active`.
    pub fn closed(self) -> Self {
        self.with(|crr| crr.is_labelled_active = false)
    }
}

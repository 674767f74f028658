//! The admin port: /livez, /readyz, /metrics and /state.
//!
//! Owns the HTTP server. Each service supplies its readiness conditions, metrics and state.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use anyhow::Context;
use axum::{Json, Router, extract::State, http::StatusCode, routing::get};
use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::Value;
use tokio::sync::watch;
use tracing::info;

use crate::Shutdown;

/// The admin port, not open yet.
pub struct Admin {
    listen: SocketAddr,
    registry: Registry,
    readiness: Readiness,
    state: StateCell,
}

/// Named conditions; the service is ready if there is at least one and all hold.
#[derive(Clone, Debug, Default)]
pub struct Readiness(watch::Sender<BTreeMap<&'static str, bool>>);

// === impl Readiness ===

impl Readiness {
    pub fn set(&self, name: &'static str, holds: bool) {
        self.0.send_modify(|conditions| {
            conditions.insert(name, holds);
        });
    }

    /// The conditions that do not hold; `None` if there is no condition yet.
    fn missing(&self) -> Option<Vec<&'static str>> {
        let conditions = self.0.borrow();
        let missing = conditions.iter().filter(|(_, holds)| !**holds);
        (!conditions.is_empty()).then(|| missing.map(|(name, _)| *name).collect())
    }
}

/// The latest state of the service, as JSON for `/state`.
#[derive(Clone, Debug, Default)]
pub struct StateCell(watch::Sender<Value>);

// === impl StateCell ===

impl StateCell {
    pub fn store(&self, state: Value) {
        self.0.send_replace(state);
    }

    fn load(&self) -> Value {
        self.0.borrow().clone()
    }
}

// === impl Admin ===

impl Admin {
    pub(crate) fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            registry: Registry::default(),
            readiness: Readiness::default(),
            state: StateCell::default(),
        }
    }

    pub fn registry(&mut self) -> &mut Registry {
        &mut self.registry
    }

    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    pub fn state(&self) -> StateCell {
        self.state.clone()
    }

    /// Serves until the shutdown begins.
    ///
    /// # Errors
    /// The service cannot listen on the address.
    pub async fn serve(self, shutdown: Shutdown) -> anyhow::Result<()> {
        let listen = self.listen;
        let listener = tokio::net::TcpListener::bind(listen)
            .await
            .with_context(|| format!("failed to listen on --admin-listen {listen}"))?;
        info!(%listen, "Admin port is open");
        axum::serve(listener, router(self))
            .with_graceful_shutdown(async move { shutdown.wait().await })
            .await
            .context("failed to serve the admin port")
    }
}

fn router(admin: Admin) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(answer_readyz))
        .route("/metrics", get(answer_metrics))
        .route(
            "/state",
            get(|State(admin): State<Arc<Admin>>| async move { Json(admin.state.load()) }),
        )
        .with_state(Arc::new(admin))
}

async fn answer_readyz(State(admin): State<Arc<Admin>>) -> (StatusCode, String) {
    let unready = |why| (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}"));
    match admin.readiness.missing() {
        Some(missing) if missing.is_empty() => (StatusCode::OK, "ok".to_owned()),
        Some(missing) => unready(missing.join(", ")),
        None => unready("starting".to_owned()),
    }
}

async fn answer_metrics(State(admin): State<Arc<Admin>>) -> (StatusCode, String) {
    let mut text = String::new();
    match encode(&mut text, &admin.registry) {
        Ok(()) => (StatusCode::OK, text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_ready_only_when_every_condition_holds() {
        let readiness = Readiness::default();
        assert_eq!(readiness.missing(), None);
        readiness.set("store", true);
        readiness.set("runtime", false);
        assert_eq!(readiness.missing(), Some(vec!["runtime"]));
        readiness.set("runtime", true);
        assert_eq!(readiness.missing(), Some(vec![]));
    }
}

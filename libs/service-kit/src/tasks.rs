//! The tasks of a service: the end of any one ends the process.
//!
//! A dead task that is not noticed is worse than a restart: no task is ever detached.

use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::{task::JoinSet, time::timeout};
use tracing::{debug, warn};

use crate::Shutdown;

/// The named tasks of a service.
pub struct Tasks {
    set: JoinSet<(&'static str, anyhow::Result<()>)>,
    shutdown: Shutdown,
}

// === impl Tasks ===

impl Tasks {
    pub(crate) fn new(shutdown: Shutdown) -> Self {
        Self {
            set: JoinSet::new(),
            shutdown,
        }
    }

    /// Starts a task. It must end soon after the shutdown has begun.
    pub fn add(
        &mut self,
        name: &'static str,
        task: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        self.set.spawn(async move { (name, task.await) });
    }

    /// Waits for the end of a task or for the shutdown, then at most `drain` for the other tasks.
    ///
    /// # Errors
    /// A task failed, panicked, or ended before the shutdown.
    pub async fn run_to_end(mut self, drain: Duration) -> anyhow::Result<()> {
        let mut outcome = tokio::select! {
            Some(ended) = self.set.join_next() => check(ended, self.shutdown.is_begun()),
            () = self.shutdown.wait() => Ok(()),
        };
        self.shutdown.begin();
        let others = async {
            while let Some(ended) = self.set.join_next().await {
                let result = check(ended, true);
                if outcome.is_ok() {
                    outcome = result;
                }
            }
        };
        if timeout(drain, others).await.is_err() {
            let left = self.set.len();
            warn!(left, ?drain, "Tasks did not end in time and were dropped");
        }
        outcome
    }
}

type Ended = Result<(&'static str, anyhow::Result<()>), tokio::task::JoinError>;

fn check(ended: Ended, is_expected: bool) -> anyhow::Result<()> {
    let (name, result) = ended.context("a task panicked")?;
    result.with_context(|| format!("task {name} failed"))?;
    debug!(name, "Task ended");
    ensure!(is_expected, "task {name} ended before the shutdown");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_unexpected_end_stops_the_others() {
        let shutdown = Shutdown::default();
        let mut tasks = Tasks::new(shutdown.clone());
        tasks.add("short", async { Ok(()) });
        tasks.add("long", {
            let shutdown = shutdown.clone();
            async move {
                shutdown.wait().await;
                Ok(())
            }
        });
        let error = tasks.run_to_end(Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(error.to_string(), "task short ended before the shutdown");
        assert!(shutdown.is_begun());
    }

    #[tokio::test]
    async fn an_end_after_the_shutdown_is_no_error() {
        let shutdown = Shutdown::default();
        let mut tasks = Tasks::new(shutdown.clone());
        tasks.add("waits", {
            let shutdown = shutdown.clone();
            async move {
                shutdown.wait().await;
                Ok(())
            }
        });
        shutdown.begin();
        tasks.run_to_end(Duration::from_secs(5)).await.unwrap();
    }
}

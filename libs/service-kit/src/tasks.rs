//! The tasks of a service: the end of any one is the end of the process.
//!
//! A task that dies unseen is worse than a restart, so none is ever detached.

use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::{task::JoinSet, time::timeout};
use tracing::{debug, warn};

use crate::Shutdown;

/// A set of named tasks.
pub struct Tasks {
    set: JoinSet<(&'static str, anyhow::Result<()>)>,
    shutdown: Shutdown,
}

impl Tasks {
    pub(crate) fn new(shutdown: Shutdown) -> Self {
        Self {
            set: JoinSet::new(),
            shutdown,
        }
    }

    /// Starts a task. It should end soon after the shutdown has begun.
    pub fn add(
        &mut self,
        name: &'static str,
        task: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        self.set.spawn(async move { (name, task.await) });
    }

    /// Waits until a task ends or a signal comes, begins the shutdown, and gives the rest `drain` to end.
    ///
    /// # Errors
    /// The first task's error, or that a task ended before the shutdown had begun, or panicked.
    pub async fn run_to_end(mut self, drain: Duration) -> anyhow::Result<()> {
        let mut outcome = tokio::select! {
            Some(ended) = self.set.join_next() => judge(ended, self.shutdown.is_begun()),
            () = self.shutdown.wait() => Ok(()),
        };
        self.shutdown.begin();
        let rest = async {
            while let Some(ended) = self.set.join_next().await {
                let judged = judge(ended, true);
                if outcome.is_ok() {
                    outcome = judged;
                }
            }
        };
        if timeout(drain, rest).await.is_err() {
            warn!(
                left = self.set.len(),
                ?drain,
                "Tasks did not end in time and are dropped"
            );
        }
        outcome
    }
}

type Ended = Result<(&'static str, anyhow::Result<()>), tokio::task::JoinError>;

fn judge(ended: Ended, is_expected: bool) -> anyhow::Result<()> {
    let (name, result) = ended.context("a task panicked")?;
    result.with_context(|| format!("task {name} failed"))?;
    debug!(name, "Task ended");
    if is_expected {
        Ok(())
    } else {
        Err(anyhow!("task {name} ended though nobody asked it to"))
    }
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
        assert_eq!(
            error.to_string(),
            "task short ended though nobody asked it to"
        );
        assert!(shutdown.is_begun());
    }

    #[tokio::test]
    async fn an_orderly_end_is_no_error() {
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

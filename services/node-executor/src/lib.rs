//! Carries out orders on one node: stops containers through the runtime, with a journal that survives crashes.
//!
//! Owns the loop around `node-rules`: wait, decide, store, act, report. It holds no Kubernetes credential:
//! it uses the bus, the runtime's CRI socket and its own journal.

mod args;
mod launches;
mod metrics;
mod orders;
mod presence;
mod run;
mod runtime;

pub use args::Args;
pub use run::run;

/// Gives a task that cannot fail the result type of the kit's tasks.
async fn infallible(task: impl Future<Output = ()>) -> anyhow::Result<()> {
    task.await;
    Ok(())
}

//! `kubectl crr`, as a user runs it.

use std::process::Stdio;

use anyhow::{Context, Result};
use tokio::process::Command;

use crate::space::Space;

/// Exit code, standard output and standard error.
pub type End = (i32, String, String);

/// Runs the program that was built beside the tests, in the space's namespace.
///
/// # Errors
/// It cannot be started.
pub async fn crr(space: &Space, arguments: &[&str]) -> Result<End> {
    let tests = std::env::current_exe()?;
    let folder = tests.ancestors().nth(2).context("the target folder")?;
    let output = Command::new(folder.join("kubectl-crr"))
        .args(["-n", &space.name])
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("failed to start kubectl-crr; build it with cargo build -p kubectl-crr")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().context("it was killed")?;
    Ok((code, text(&output.stdout), text(&output.stderr)))
}

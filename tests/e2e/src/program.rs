//! `kubectl crr`, as a user runs it: the program that was built beside the tests.

use std::process::{Output, Stdio};

use anyhow::{Context, Result};
use tokio::process::{Child, Command};

use crate::space::Space;

/// Exit code, standard output and standard error.
pub type End = (i32, String, String);

/// Runs it to its end.
///
/// # Errors
/// It was not built, or was killed.
pub async fn crr(space: &Space, arguments: &[&str]) -> Result<End> {
    end(&start_crr(space, arguments)?.wait_with_output().await?)
}

/// Starts it.
///
/// # Errors
/// It was not built.
pub fn start_crr(space: &Space, arguments: &[&str]) -> Result<Child> {
    let tests = std::env::current_exe()?;
    let folder = tests.ancestors().nth(2).context("the target folder")?;
    let child = Command::new(folder.join("kubectl-crr"))
        .args(["-n", &space.name])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    child.context("failed to start kubectl-crr; build it with cargo build -p kubectl-crr")
}

/// How it ended.
///
/// # Errors
/// It was killed.
pub fn end(output: &Output) -> Result<End> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().context("it was killed")?;
    Ok((code, text(&output.stdout), text(&output.stderr)))
}

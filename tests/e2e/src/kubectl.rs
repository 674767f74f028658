//! kubectl, as a user runs it.

use std::process::Stdio;

use anyhow::{Context, Result, bail};
use tokio::{io::AsyncWriteExt, process::Command};

/// Runs kubectl with that standard input, and gives what it printed.
///
/// # Errors
/// It cannot be started, or it failed; the error has what it printed as errors.
pub async fn kubectl(arguments: &[&str], input: &str) -> Result<String> {
    let mut child = Command::new("kubectl")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("failed to start kubectl")?;
    let mut stdin = child.stdin.take().context("kubectl has no input")?;
    stdin.write_all(input.as_bytes()).await?;
    drop(stdin);
    let output = child.wait_with_output().await?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("kubectl {}: {}", arguments.join(" "), errors.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

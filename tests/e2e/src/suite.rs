//! Runs the tests of this crate: built first, then on a cluster, first those that break nothing.
//!
//! Words after `--` go to the tests: `cargo run -p e2e --bin e2e -- refuse`.

use std::{ffi::OsString, process::ExitCode};

use anyhow::{Context, Result, ensure};
use cluster::{as_if_called_by_hand, say};
use tokio::process::Command;

use crate::stage::{enter_if_asked, run_on_stage};

/// Brings a cluster up if need be, and runs the tests.
///
/// # Errors
/// The tests do not build, or the cluster does not come up.
pub async fn run() -> Result<ExitCode> {
    if let Some(end) = enter_if_asked().await {
        return end;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    say("building the tests …");
    for words in [
        &["test", "-q", "-p", "e2e", "--no-run"][..],
        &["build", "-q", "-p", "kubectl-crr"],
    ] {
        let mut build = Command::new(&cargo);
        as_if_called_by_hand(&mut build);
        let built = build.args(words).status().await;
        ensure!(
            built.context("failed to run cargo")?.success(),
            "the tests do not build"
        );
    }
    let runner = if has_nextest(&cargo).await {
        &[
            "nextest",
            "run",
            "--offline",
            "-p",
            "e2e",
            "--ignore-default-filter",
        ][..]
    } else {
        say("cargo-nextest is not installed: one test file after the other");
        &[
            "test",
            "--offline",
            "-q",
            "--no-fail-fast",
            "-p",
            "e2e",
            "--tests",
        ]
    };
    let words = runner.iter().map(OsString::from);
    let command: Vec<_> = [cargo.clone()]
        .into_iter()
        .chain(words)
        .chain(std::env::args_os().skip(1))
        .collect();
    run_on_stage(&command, false).await
}

async fn has_nextest(cargo: &OsString) -> bool {
    let mut ask = Command::new(cargo);
    ask.args(["nextest", "--version"]);
    ask.output()
        .await
        .is_ok_and(|output| output.status.success())
}

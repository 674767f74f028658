//! A cluster for the time of a command: the one of `KUBECONFIG`, or the test cluster with our services on it.
//!
//! Owns bringing it up, deploying, and taking it down again. What runs on it is the command's own.

use std::{
    ffi::{OsStr, OsString},
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::Parser;
use cluster::{Cluster, Folders, Options, as_if_called_by_hand, say};
use tokio::{
    process::Command,
    signal::unix::{SignalKind, signal},
};

/// The hidden word with which a program of ours calls itself to step into the cluster's network.
const ENTER: &str = "enter-the-cluster";

/// This program, even when its file was built anew meanwhile.
const OURSELVES: &str = "/proc/self/exe";

/// Runs a command where it reaches a cluster with Podwright on it. A test cluster that was not up before is
/// taken down at the end, however it ends, unless it is to be kept.
///
/// # Errors
/// The cluster does not come up, or the command cannot be started.
pub async fn run_on_stage(command: &[OsString], keep: bool) -> Result<ExitCode> {
    let folders = Folders::from_environment()?;
    let given = std::env::var_os("KUBECONFIG").filter(|path| !path.is_empty());
    if given.is_some_and(|path| path != folders.kubeconfig().as_os_str()) {
        return run(&command[0], &command[1..]).await;
    }
    let was_up = Cluster::attach(folders.clone()).is_ok();
    let mut terminate = signal(SignalKind::terminate())?;
    let end = tokio::select! {
        end = play(&folders, was_up, command) => end,
        _ = terminate.recv() => Ok(ExitCode::from(143)),
        signal = tokio::signal::ctrl_c() => signal.map(|()| ExitCode::from(130)).map_err(Into::into),
    };
    if !was_up && !keep {
        say("taking the cluster down …");
        Cluster::down(&folders).await?;
    }
    end
}

async fn play(folders: &Folders, was_up: bool, command: &[OsString]) -> Result<ExitCode> {
    if !was_up {
        say("bringing a cluster of two nodes up …");
        let mut options = Options::from_environment()?;
        options.folders = folders.clone();
        Cluster::up(&options).await?;
    }
    cluster::run(cluster::Args::parse_from(["podwright-cluster", "deploy"])).await?;
    let words = [OsString::from(ENTER)];
    let words: Vec<_> = words.iter().chain(command).cloned().collect();
    run(OsStr::new(OURSELVES), &words).await
}

/// Steps into the cluster and becomes the command, where this program was called to do so.
pub async fn enter_if_asked() -> Option<Result<ExitCode>> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != ENTER {
        return None;
    }
    let exec = ["podwright-cluster", "exec", "--"].map(OsString::from);
    let arguments = cluster::Args::parse_from(exec.into_iter().chain(words));
    Some(cluster::run(arguments).await)
}

async fn run(program: &OsStr, arguments: &[OsString]) -> Result<ExitCode> {
    let mut command = Command::new(program);
    as_if_called_by_hand(&mut command); // It may be a cargo.
    let status = command.args(arguments).kill_on_drop(true).status().await;
    let status = status.with_context(|| format!("failed to run {}", program.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

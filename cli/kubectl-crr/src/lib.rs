//! `kubectl crr`, a plugin of kubectl: restarts containers in place and explains what became of it.
//!
//! Start at `args` (the command line) and `commands` (one module per command). `cluster` does the requests to the API
//! server; the other modules are pure. The restart of a workload is `commands::workload` (IO), `restarts` (state of each pod)
//! and `rollout` (which pods are next).

mod args;
mod cluster;
mod commands;
mod failure;
mod members;
mod outcome;
mod output;
mod pod;
mod progress;
mod request;
mod restarts;
mod rollout;
mod screen;
mod values;
mod why;

use std::{io::Write, process::ExitCode};

use clap::Parser;

use crate::{args::Args, failure::Exit};

/// Runs the command line, and returns the exit code.
pub async fn run() -> ExitCode {
    // The only error is that a provider is installed already, which serves as well.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let args = Args::parse(); // Exits with 2 if it makes no sense.
    let exit = Box::pin(commands::run(args))
        .await
        .unwrap_or_else(|failure| {
            // A closed standard error cannot be reported anywhere.
            let _unwritten = writeln!(std::io::stderr(), "error: {failure}");
            Exit::Refused
        });
    exit.into()
}

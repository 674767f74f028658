//! `kubectl crr`: restart containers in place, and see what has become of it.
//!
//! Start at `args` (what can be asked) and `commands` (what is done then). `cluster` is the only module that talks to
//! the API server; everything that chooses, reads or words something is pure and beside it. A workload's restart is
//! `commands::workload` (what is done), `restarts` (how far it is) and `rollout` (which pods are next).

mod amount;
mod args;
mod clock;
mod cluster;
mod commands;
mod failure;
mod jaeger;
mod max_unavailable;
mod members;
mod naming;
mod outcome;
mod output;
mod progress;
mod request;
mod restarts;
mod rollout;
mod screen;
mod subject;
mod table;
mod target;
mod trace;
mod why;

use std::{io::Write, process::ExitCode};

use clap::Parser;

use crate::{args::Args, failure::Exit};

/// Parses the command line, does what it says, and tells what went wrong.
pub async fn run() -> ExitCode {
    // The only error is that a provider is installed already, which serves as well.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let args = Args::parse(); // Ends the process with 2 where it makes no sense.
    match commands::run(args).await {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // Nobody is left to tell when this cannot be written.
            let _unwritten = writeln!(std::io::stderr(), "error: {failure}");
            Exit::Refused.into()
        }
    }
}

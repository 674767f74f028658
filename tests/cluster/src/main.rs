//! `podwright-cluster`: the test cluster on the command line.

use std::process::ExitCode;

use clap::Parser;
use cluster::Args;

#[tokio::main]
async fn main() -> ExitCode {
    match cluster::run(Args::parse()).await {
        Ok(code) => code,
        Err(error) => {
            cluster::say(format_args!("podwright-cluster: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

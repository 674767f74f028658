//! `just bench`: measures, prints a table, and keeps the raw figures.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match bench::run().await {
        Ok(code) => code,
        Err(error) => {
            cluster::say(format_args!("{error:?}"));
            ExitCode::FAILURE
        }
    }
}

//! `just demo`: one container of a running pod is recreated, and everything that happens is shown.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match e2e::demo::run().await {
        Ok(code) => code,
        Err(error) => {
            cluster::say(format_args!("{error:?}"));
            ExitCode::FAILURE
        }
    }
}

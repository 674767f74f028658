//! `just test-e2e`: the end-to-end tests, on `KUBECONFIG`'s cluster or on one for the time of the tests.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match e2e::suite::run().await {
        Ok(code) => code,
        Err(error) => {
            cluster::say(format_args!("{error:?}"));
            ExitCode::FAILURE
        }
    }
}

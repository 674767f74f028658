//! The program `kubectl-crr`.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    kubectl_crr::run().await
}

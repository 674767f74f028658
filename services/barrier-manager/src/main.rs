//! Starts the barrier-manager; what it does is in `run.rs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    service_kit::main("barrier-manager", barrier_manager::run)
}

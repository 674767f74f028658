//! Starts the crr-scheduler; what it does is in `run.rs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    service_kit::main("crr-scheduler", crr_scheduler::run)
}

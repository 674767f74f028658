//! Starts admission; what it does is in `run.rs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    service_kit::main("admission", admission::run)
}

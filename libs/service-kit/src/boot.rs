//! The start and the end of a process around the service's `run`.
//!
//! Owns their order: TLS provider, arguments, telemetry, runtime, run, flush. The work of a service is in its own
//! `run.rs`.

use std::process::ExitCode;

use model::error_chain::ErrorChain;
use tracing::{error, info};

use crate::{Admin, HasKitArgs, KitArgs, Shutdown, Tasks, telemetry};

/// Shared parts of a running service.
pub struct Kit {
    pub shutdown: Shutdown,
    pub admin: Admin,
    pub tasks: Tasks,
}

/// Runs a service: parses its arguments and sets telemetry up. Returns the exit code of the process.
///
/// The exit code is 0 after a shutdown, 1 if the service failed, 2 if the arguments are wrong.
pub fn main<A, F>(service: &'static str, run: fn(A, Kit) -> F) -> ExitCode
where
    A: HasKitArgs,
    F: Future<Output = anyhow::Result<()>>,
{
    // The only error is that a provider is installed already, which is as good.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let args = A::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail_early("failed to start the runtime", &error),
    };
    runtime.block_on(run_service(service, args, run))
}

async fn run_service<A, F>(service: &'static str, args: A, run: fn(A, Kit) -> F) -> ExitCode
where
    A: HasKitArgs,
    F: Future<Output = anyhow::Result<()>>,
{
    let kit_args: KitArgs = args.kit().clone();
    let telemetry = match telemetry::start(service, &kit_args) {
        Ok(telemetry) => telemetry,
        Err(error) => return fail_early("failed to set telemetry up", &error),
    };
    let version = env!("CARGO_PKG_VERSION");
    info!(service, version, ?args, "Starting");
    let shutdown = Shutdown::on_signals();
    let kit = Kit {
        admin: Admin::new(kit_args.admin_listen),
        tasks: Tasks::new(shutdown.clone()),
        shutdown,
    };
    let exit_code = match run(args, kit).await {
        Ok(()) => {
            info!(service, "Ended");
            ExitCode::SUCCESS
        }
        Err(error) => {
            error!(service, error = %ErrorChain(error.as_ref()), "Failed");
            ExitCode::FAILURE
        }
    };
    telemetry.flush().await;
    exit_code
}

#[expect(clippy::print_stderr, reason = "logging is not set up yet")]
fn fail_early(step: &str, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("{step}: {}", ErrorChain(error));
    ExitCode::FAILURE
}

//! kubectl, as the cluster's own administrator, from inside the control plane's namespace.

use std::ffi::OsStr;

use anyhow::Result;
use tokio::process::Command;

use crate::{
    command::{bare, output, output_of},
    folders::Folders,
    network,
    plan::CONTROL_PLANE,
    programs::Programs,
};

pub(crate) fn command(folders: &Folders, programs: &Programs) -> Result<Command> {
    let mut command = bare("nsenter");
    command
        .arg(network::entrance(CONTROL_PLANE))
        .arg(programs.path("kubectl")?)
        .arg("--kubeconfig")
        .arg(folders.kubeconfig());
    Ok(command)
}

/// Runs to the end and gives what was printed.
pub(crate) async fn run<I, S>(
    folders: &Folders,
    programs: &Programs,
    arguments: I,
) -> Result<String>
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    output(command(folders, programs)?.args(arguments)).await
}

/// Applies a manifest.
pub(crate) async fn apply(folders: &Folders, programs: &Programs, manifest: &str) -> Result<()> {
    let mut apply = command(folders, programs)?;
    output_of(apply.args(["apply", "--server-side", "-f", "-"]), manifest).await?;
    Ok(())
}

//! Carries out one command of the command line.

use std::{
    ffi::OsString,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command as Program, ExitCode},
};

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    args::{Args, Command, Fault, NodeCommand, NodeFault, ProcessFault},
    cluster::{Cluster, Options, build},
    command::FOREIGN_VARIABLES,
    daemon::{Place, entrance},
    deploy,
    folders::Folders,
    images::{Image, from_binary},
    logs,
    programs::Programs,
    progress::{print, say},
    state::State,
    status::Status,
};

pub async fn run(args: Args) -> Result<ExitCode> {
    let folders = Folders::from_environment()?;
    match args.command {
        Command::Up { nodes } => up(Options { folders, nodes }).await?,
        Command::Down => down(&folders).await?,
        Command::Status => status(&folders)?,
        Command::Kubectl { arguments } => return kubectl(&Cluster::attach(folders)?, arguments),
        Command::Exec { command } => {
            return become_program(&Cluster::attach(folders)?, Place::ControlPlane, command);
        }
        Command::Node { name, command } => {
            let NodeCommand::Exec { command } = command;
            let cluster = Cluster::attach(folders)?;
            let node = cluster.number(&name)?;
            return become_program(&cluster, Place::Node(node), command);
        }
        Command::Deploy { root } => {
            deploy::deploy(&folders, &Cluster::attach(folders.clone())?, &root).await?;
        }
        Command::Fault(fault) => break_on_purpose(&Cluster::attach(folders)?, fault).await?,
        Command::Load { archives } => load(&Cluster::attach(folders)?, archives).await?,
        Command::Logs { pattern, into } => {
            let into = into.unwrap_or_else(|| folders.collected_logs());
            logs::collect(&folders, &pattern, &into)?
                .iter()
                .for_each(|copy| print_path(copy));
        }
        Command::Build => drop(build(&folders).await?),
        Command::Path { program } => print_path(&Programs::build_one(&folders, &program).await?),
        Command::Image {
            name,
            binary,
            entrypoint,
        } => {
            let entrypoint: Vec<_> = entrypoint.iter().map(String::as_str).collect();
            print_path(
                &from_binary(&folders, &name, &binary, &entrypoint)
                    .await?
                    .archive,
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_path(path: &Path) {
    print(format_args!("{}\n", path.display()));
}

async fn down(folders: &Folders) -> Result<()> {
    let was_up = Cluster::down(folders).await?;
    say(if was_up {
        "the cluster is down"
    } else {
        "no cluster was up"
    });
    Ok(())
}

fn status(folders: &Folders) -> Result<()> {
    let state = State::read(folders)?.context("no cluster is up")?;
    print(Status::of(&state));
    Ok(())
}

fn kubectl(cluster: &Cluster, arguments: Vec<OsString>) -> Result<ExitCode> {
    let kubectl = cluster.programs.path("kubectl")?.into_os_string();
    become_program(
        cluster,
        Place::ControlPlane,
        [kubectl].into_iter().chain(arguments),
    )
}

async fn load(cluster: &Cluster, archives: Vec<PathBuf>) -> Result<()> {
    for archive in archives {
        cluster.load(&Image::from_archive(archive)?).await?;
    }
    Ok(())
}

async fn break_on_purpose(cluster: &Cluster, fault: Fault) -> Result<()> {
    match fault {
        Fault::Node { name, fault } => match fault {
            NodeFault::Kill => cluster.kill_node(&name).await,
            NodeFault::Restart => cluster.restart_node(&name).await,
            NodeFault::CutOff => cluster.cut_off_node(&name).await,
            NodeFault::Restore => cluster.restore_node(&name).await,
        },
        Fault::Process { name, fault } => match fault {
            ProcessFault::Kill => cluster.kill(&name).await,
            ProcessFault::Terminate => cluster.terminate(&name).await,
            ProcessFault::Pause => cluster.pause(&name).await,
            ProcessFault::Resume => cluster.resume(&name).await,
            ProcessFault::Start => cluster.start(&name).await,
            ProcessFault::Restart => cluster.restart(&name).await,
        },
    }
}

/// Brings a cluster up; when that is interrupted, nothing stays but the logs.
async fn up(options: Options) -> Result<()> {
    tokio::select! {
        up = Cluster::up(&options) => return up.map(drop),
        () = interrupted()? => {}
    }
    // An interrupted build has begun nothing, and a refused second cluster is not ours to end.
    if State::read(&options.folders)?.is_some_and(|state| state.is_half_started()) {
        say("cleaning up …");
        Cluster::down(&options.folders).await?;
    }
    bail!("interrupted")
}

/// Waits for Ctrl-C or a polite end.
fn interrupted() -> Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Becomes a program in that place, so that its signals, terminal and exit code are its own.
fn become_program(
    cluster: &Cluster,
    place: Place,
    words: impl IntoIterator<Item = OsString>,
) -> Result<ExitCode> {
    let inside = entrance(&cluster.state()?, place)?;
    let mut program = Program::new(&inside[0]);
    program.args(&inside[1..]).args(words);
    for name in FOREIGN_VARIABLES {
        program.env_remove(name);
    }
    program.env("KUBECONFIG", cluster.kubeconfig());
    program.env(
        "CONTAINER_RUNTIME_ENDPOINT",
        "unix:///run/containerd/containerd.sock",
    );
    let path = std::env::var("PATH").unwrap_or_default();
    program.env("PATH", format!("{}:{path}", cluster.programs.search_path()));
    Err(program.exec()).context("failed to run nsenter")
}

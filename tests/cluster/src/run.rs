//! Carries out one command of the command line.

use std::{
    ffi::OsString,
    os::unix::process::CommandExt,
    process::{Command as Program, ExitCode},
};

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    args::{Args, Command, Fault, NodeCommand, NodeFault, ProcessFault},
    cleanup,
    cluster::{Cluster, Options, build},
    command::FOREIGN_VARIABLES,
    daemon::{Place, entrance},
    folders::Folders,
    images::Image,
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
        Command::Down => {
            let was_up = Cluster::down(&folders).await?;
            say(if was_up {
                "the cluster is down"
            } else {
                "no cluster was up"
            });
        }
        Command::Status => match State::read(&folders)? {
            Some(state) => print(Status::of(&state)),
            None => bail!("no cluster is up"),
        },
        Command::Kubectl { arguments } => {
            let cluster = Cluster::attach(folders)?;
            let kubectl = cluster.programs.path("kubectl")?.into();
            return become_program(
                &cluster,
                Place::ControlPlane,
                [kubectl].into_iter().chain(arguments),
            );
        }
        Command::Exec { command } => {
            return become_program(&Cluster::attach(folders)?, Place::ControlPlane, command);
        }
        Command::Build => drop(build(&folders).await?),
        Command::Path { program } => {
            print(format_args!(
                "{}\n",
                Programs::build_one(&folders, &program).await?.display()
            ));
        }
        Command::Logs { pattern, into } => {
            let into = into.unwrap_or_else(|| folders.collected_logs());
            for copy in logs::collect(&folders, &pattern, &into)? {
                print(format_args!("{}\n", copy.display()));
            }
        }
        Command::Node {
            name,
            command: NodeCommand::Exec { command },
        } => {
            let cluster = Cluster::attach(folders)?;
            let node = cluster.number(&name)?;
            return become_program(&cluster, Place::Node(node), command);
        }
        Command::Fault(fault) => break_on_purpose(&Cluster::attach(folders)?, fault).await?,
        Command::Load { archives } => {
            let cluster = Cluster::attach(folders)?;
            for archive in archives {
                cluster.load(&Image::from_archive(archive)?).await?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
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

/// Brings a cluster up; when it fails or is interrupted, nothing stays but the logs.
async fn up(options: Options) -> Result<()> {
    let folders = options.folders.clone();
    let result = tokio::select! {
        up = Cluster::up(&options) => up.map(drop),
        () = interrupted()? => Err(anyhow::anyhow!("interrupted")),
    };
    // A second cluster was refused, not begun: the first one stays.
    let begun = State::read(&folders)?.is_some_and(|state| state.is_half_started());
    if result.is_err() && begun {
        say("cleaning up …");
        cleanup::remove_all(&folders).await?;
        say(format_args!("the logs are in {}", folders.logs().display()));
    }
    result
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

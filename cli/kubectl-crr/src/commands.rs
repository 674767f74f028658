//! What each command does.

mod restart;
mod trace;
mod why;
mod workload;

use std::io;

use clap::CommandFactory;

use crate::{
    args::{Args, Command, ListArgs},
    clock,
    cluster::{Cluster, Jaeger},
    failure::{Exit, Failure},
    output,
    table::{rows, table},
};

/// Does what was asked.
pub(crate) async fn run(args: Args) -> Result<Exit, Failure> {
    if let Command::Completion { shell } = args.command {
        clap_complete::generate(
            shell,
            &mut Args::command(),
            "kubectl-crr",
            &mut io::stdout(),
        );
        return Ok(Exit::Done);
    }
    let (kubeconfig, context) = (args.kubeconfig.as_deref(), args.context.as_deref());
    let cluster = Cluster::connect(kubeconfig, context, args.namespace.as_deref()).await?;
    match args.command {
        Command::Restart(args) => Box::pin(restart::run(&cluster, &args)).await,
        Command::List(args) => list(&cluster, &args).await,
        Command::Why(args) => why::run(&cluster, args).await,
        Command::Trace(trace) => {
            let jaeger = Jaeger::connect(kubeconfig, context, &trace).await?;
            trace::run(&cluster, &jaeger, &trace).await
        }
        Command::Completion { .. } => Ok(Exit::Done),
    }
}

async fn list(cluster: &Cluster, args: &ListArgs) -> Result<Exit, Failure> {
    let requests = cluster.fetch_requests(args.all_namespaces, args.selector.as_deref());
    let requests = requests.await?;
    if let Some(format) = args.output {
        output::print_all(&requests, format)?;
    } else if requests.is_empty() {
        output::say("No requests found.")?;
    } else {
        let table = table(&rows(&requests, args.all_namespaces, clock::now()));
        output::say(table.trim_end())?;
    }
    Ok(Exit::Done)
}

//! The commands: each reads the cluster, and prints. `restart` also makes requests, and waits.

mod restart;
mod trace;
mod workload;

use std::io;

use clap::CommandFactory;
use jiff::Timestamp;
use serde::Serialize;

use crate::{
    args::{Args, Command, ListArgs, WhyArgs},
    cluster::Cluster,
    failure::{Exit, Failure, Result},
    output,
    values::Subject,
    why::{PodStory, RequestExplained},
};

pub(crate) async fn run(args: Args) -> Result<Exit> {
    if let Command::Completion { shell } = args.command {
        let mut command = Args::command();
        clap_complete::generate(shell, &mut command, "kubectl-crr", &mut io::stdout());
        return Ok(Exit::Done);
    }
    let access = &args.access;
    let cluster = Cluster::connect(access).await?;
    match args.command {
        Command::Restart(args) => Box::pin(restart::run(&cluster, &args)).await,
        Command::List(args) => list(&cluster, &args).await,
        Command::Why(args) => Box::pin(why(&cluster, args)).await,
        Command::Trace(args) => trace::run(&cluster, access, &args).await,
        Command::Completion { .. } => Ok(Exit::Done),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "ages need the present; nothing else reads the clock"
)]
async fn list(cluster: &Cluster, args: &ListArgs) -> Result<Exit> {
    let requests = cluster.fetch_requests(args.all_namespaces, args.selector.as_deref());
    let requests = requests.await?;
    if let Some(format) = args.output {
        output::print_all(&requests, format)?;
    } else if requests.is_empty() {
        output::say("No requests found.")?;
    } else {
        let rows = output::rows(&requests, args.all_namespaces, Timestamp::now());
        output::say(output::table(&rows).trim_end())?;
    }
    Ok(Exit::Done)
}

async fn why(cluster: &Cluster, args: WhyArgs) -> Result<Exit> {
    let as_json = args.output.is_some();
    let (request, pod) = match args.subject {
        Subject::Request(name) => (Some(cluster.fetch("request ", &name).await?), None),
        Subject::Pod(name) => (None, Some(cluster.fetch("pod ", &name).await?)),
        Subject::Either(name) => match cluster.find("request ", &name).await? {
            Some(request) => (Some(request), None),
            None => {
                let what = format!("{name} in namespace {}", cluster.namespace);
                let missing = || Failure(format!("there is neither a request nor a pod {what}"));
                let pod = cluster.find("pod ", &name).await?;
                (None, Some(pod.ok_or_else(missing)?))
            }
        },
    };
    if let Some(request) = request {
        let events = cluster.fetch_events(&request).await?;
        let explained = RequestExplained::new(&request, &events);
        print(&explained, &explained.lines(), as_json)?;
    } else if let Some(pod) = pod {
        let story = PodStory::new(&cluster.fetch_pod_evidence(pod).await?);
        print(&story, &story.lines(), as_json)?;
    }
    Ok(Exit::Done)
}

fn print(story: &impl Serialize, lines: &[String], as_json: bool) -> Result<()> {
    if as_json {
        return output::print_json(story);
    }
    lines.iter().try_for_each(|line| output::say(line))
}

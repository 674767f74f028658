//! `restart`: one request for one pod, and the wait for its end.

use std::{io::Write, pin::pin};

use futures::TryStreamExt;
use k8s_api::crd::ContainerRecreateRequest;
use kube::ResourceExt;
use tokio::{signal::ctrl_c, time::timeout};

use crate::{
    args::{DryRun, RestartArgs},
    clock,
    cluster::Cluster,
    failure::{Exit, Failure},
    outcome::{Outcome, lines, outcome},
    output::{self, kind_and_name},
    request::{containers_of, request},
};

/// Restarts, and waits if asked to.
pub(super) async fn run(cluster: &Cluster, args: &RestartArgs) -> Result<Exit, Failure> {
    let pod = pod_name(&args.pod)?;
    let containers = if args.containers.is_empty() {
        containers_of(&cluster.fetch_pod(pod).await?)
    } else {
        args.containers.clone()
    };
    let mut request = request(args, pod, &containers, &clock::random_word());
    request.metadata.namespace = Some(cluster.namespace.clone());
    if args.dry_run != Some(DryRun::Client) {
        let only_check = args.dry_run.is_some();
        request = cluster.create(&request, only_check).await?;
    }
    let made = match args.dry_run {
        None => "created",
        Some(DryRun::Client) => "created (dry run)",
        Some(DryRun::Server) => "created (server dry run)",
    };
    let exit = if args.wait && args.dry_run.is_none() {
        tell(args, &format!("{} {made}", kind_and_name(&request)))?;
        wait(cluster, args, &mut request).await?
    } else {
        if args.output.is_none() {
            output::say(&format!("{} {made}", kind_and_name(&request)))?;
        }
        Exit::Done
    };
    if let Some(format) = args.output {
        output::print(&request, format)?;
    }
    Ok(exit)
}

fn pod_name(word: &str) -> Result<&str, Failure> {
    let name = word.strip_prefix("pod/").or(word.strip_prefix("pods/"));
    let name = name.unwrap_or(word);
    if name.is_empty() || name.contains('/') {
        let problem = format!("POD: {word:?} is not allowed; allowed are NAME and pod/NAME");
        return Err(Failure::Usage(problem));
    }
    Ok(name)
}

/// Waits for the end of a request; `request` is what was last seen of it.
async fn wait(
    cluster: &Cluster,
    args: &RestartArgs,
    request: &mut ContainerRecreateRequest,
) -> Result<Exit, Failure> {
    let name = request.name_any();
    let end = tokio::select! {
        end = timeout(args.timeout, watch(cluster, args, request)) => end.unwrap_or(Ok(Exit::Timeout)),
        _ = ctrl_c() => Ok(Exit::Interrupted),
    }?;
    let why = match end {
        Exit::Timeout => "--timeout is over",
        Exit::Interrupted => "interrupted",
        Exit::Done | Exit::Failed | Exit::Refused => return Ok(end),
    };
    let look = format!("kubectl get crr {name} -n {} -o yaml", cluster.namespace);
    let line = format!("{why}: the restart goes on; look with: {look}");
    writeln!(std::io::stderr(), "{line}")?;
    Ok(end)
}

async fn watch(
    cluster: &Cluster,
    args: &RestartArgs,
    request: &mut ContainerRecreateRequest,
) -> Result<Exit, Failure> {
    let name = request.name_any();
    let mut changes = pin!(cluster.watch_request(&name));
    let mut told = Vec::new();
    loop {
        let change = match changes.try_next().await {
            Ok(change) => change.flatten(),
            Err(error) => {
                // The watch begins anew by itself; --timeout ends it.
                writeln!(std::io::stderr(), "warning: {error}")?;
                continue;
            }
        };
        let Some(now) = change else {
            tell(
                args,
                &format!(
                    "{}: FAILED (the request was deleted)",
                    request.spec.pod_name
                ),
            )?;
            return Ok(Exit::Failed);
        };
        *request = now;
        let now = lines(request);
        for line in now.iter().filter(|line| !told.contains(*line)) {
            tell(args, line)?;
        }
        told = now;
        match outcome(request) {
            Some(Outcome::Succeeded) => return Ok(Exit::Done),
            Some(Outcome::Failed) => return Ok(Exit::Failed),
            None => {}
        }
    }
}

/// Progress; with `-o`, standard output is the object's.
fn tell(args: &RestartArgs, line: &str) -> Result<(), Failure> {
    if args.output.is_some() {
        return Ok(writeln!(std::io::stderr(), "{line}")?);
    }
    output::say(line)
}

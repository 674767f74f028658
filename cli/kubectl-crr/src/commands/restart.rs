//! `restart` of one pod: one request, and the wait for its end. `workload` restarts several pods.

use std::pin::pin;

use futures::TryStreamExt;
use k8s_api::crd::ContainerRecreateRequest as Crr;
use kube::{ResourceExt, runtime::watcher};
use tokio::{
    signal::ctrl_c,
    time::{Instant, interval, timeout},
};

use super::workload;
use crate::{
    args::{DryRun, RestartArgs},
    cluster::{Cluster, News},
    failure::{Exit, Result},
    outcome::{Outcome, lines, outcome},
    output,
    pod::restartable_containers,
    progress,
    request::{random_restart_id, request},
    screen::{self, Line, REPAINT, Screen},
    values::Kind,
};

pub(super) async fn run(cluster: &Cluster, args: &RestartArgs) -> Result<Exit> {
    match &args.target {
        Some(target) if target.kind == Kind::Pod => one(cluster, args, &target.name).await,
        _ => workload::run(cluster, args).await,
    }
}

async fn one(cluster: &Cluster, args: &RestartArgs, pod: &str) -> Result<Exit> {
    let all = match args.containers.as_slice() {
        [] => restartable_containers(&cluster.fetch("pod ", pod).await?),
        _ => Vec::new(),
    };
    let mut request = request(args, &cluster.namespace, pod, &all, &random_restart_id());
    if args.dry_run != Some(DryRun::Client) {
        request = cluster.create(&request, args.dry_run.is_some()).await?;
    }
    let mut exit = Exit::Done;
    let made = output::made(&request, args.dry_run);
    if args.wait && args.dry_run.is_none() {
        let mut screen = Screen::of_process(args.output.is_some());
        screen.print(&Line::Plain(made))?;
        exit = wait(cluster, args, &mut request, &mut screen).await?;
    } else if args.output.is_none() {
        output::say(&made)?;
    }
    if let Some(format) = args.output {
        output::print(&request, format)?;
    }
    Ok(exit)
}

/// Waits for the end of a request, and keeps `request` up to date.
async fn wait(
    cluster: &Cluster,
    args: &RestartArgs,
    request: &mut Crr,
    screen: &mut Screen,
) -> Result<Exit> {
    let name = request.name_any();
    let end = tokio::select! {
        end = timeout(args.timeout, watch(cluster, request, screen)) => end.unwrap_or(Ok(Exit::Timeout)),
        _ = ctrl_c() => Ok(Exit::Interrupted),
    };
    screen.clear()?;
    let end = end?;
    let why = match end {
        Exit::Timeout => "--timeout is over",
        Exit::Interrupted => "interrupted",
        Exit::Done | Exit::Failed | Exit::Refused => return Ok(end),
    };
    let look = format!("kubectl get crr {name} -n {} -o yaml", cluster.namespace);
    screen.note(&format!("{why}: the restart goes on; look with: {look}"))?;
    Ok(end)
}

async fn watch(cluster: &Cluster, request: &mut Crr, screen: &mut Screen) -> Result<Exit> {
    let name = request.name_any();
    let which = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut changes = pin!(cluster.watch(which));
    let start = Instant::now();
    let mut second = interval(REPAINT);
    let mut printed = Vec::new();
    loop {
        let news = tokio::select! {
            news = changes.try_next() => news?,
            _ = second.tick(), if screen.is_live() => None,
        };
        match news {
            Some(News::Is(now)) => *request = now,
            Some(News::All(mut all)) if !all.is_empty() => *request = all.remove(0),
            Some(News::All(_) | News::Gone(_)) => {
                let pod = &request.spec.pod_name;
                let line = format!("{pod}: FAILED (the request was deleted)");
                screen.print(&Line::Bad(line))?;
                return Ok(Exit::Failed);
            }
            Some(News::Broken(why)) => {
                screen.print(&Line::Warning(format!("watching {name}: {why}")))?;
            }
            None => {}
        }
        let lines = lines(request);
        for line in lines.iter().filter(|line| !printed.contains(*line)) {
            screen.print(&Line::Step(line.clone()))?;
        }
        printed = lines;
        let (exit, last): (_, fn(String) -> Line) = match outcome(request) {
            Some(Outcome::Succeeded) => (Exit::Done, Line::Good),
            Some(Outcome::Failed) => (Exit::Failed, Line::Bad),
            None => {
                let block = progress::of_request(request, start.elapsed(), screen::size().0);
                screen.paint(block)?;
                continue;
            }
        };
        screen.clear()?;
        if screen.is_live() {
            let mut lines = printed.into_iter().map(last);
            lines.try_for_each(|line| screen.print(&line))?;
        }
        return Ok(exit);
    }
}

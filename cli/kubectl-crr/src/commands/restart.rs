//! `restart` of one pod: one request, and the wait for its end. Of several pods it is `workload`'s.

use std::pin::pin;

use futures::TryStreamExt;
use k8s_api::crd::ContainerRecreateRequest;
use kube::ResourceExt;
use tokio::{
    signal::ctrl_c,
    time::{Instant, interval, timeout},
};

use super::workload::{self, Asked};
use crate::{
    args::{DryRun, RestartArgs},
    clock,
    cluster::{Cluster, News},
    failure::{Exit, Failure},
    outcome::{Outcome, lines, outcome},
    output, progress,
    request::{containers_of, request},
    screen::{REPAINT, Screen, Tone},
    target::Kind,
};

/// Restarts, and waits if asked to.
pub(super) async fn run(cluster: &Cluster, args: &RestartArgs) -> Result<Exit, Failure> {
    match (&args.target, &args.selector) {
        (Some(target), _) if target.kind == Kind::Pod => one(cluster, args, &target.name).await,
        (Some(target), _) => workload::run(cluster, args, Asked::Workload(target)).await,
        (None, Some(labels)) => workload::run(cluster, args, Asked::Labels(labels)).await,
        (None, None) => Err(Failure::Usage("give a POD, a TYPE/NAME or -l".to_owned())),
    }
}

async fn one(cluster: &Cluster, args: &RestartArgs, pod: &str) -> Result<Exit, Failure> {
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
    let made = output::made(&request, args.dry_run);
    let exit = if args.wait && args.dry_run.is_none() {
        let mut screen = Screen::of_process(args.output.is_some());
        screen.line(&made, Tone::Plain)?;
        wait(cluster, args, &mut request, &mut screen).await?
    } else {
        if args.output.is_none() {
            output::say(&made)?;
        }
        Exit::Done
    };
    if let Some(format) = args.output {
        output::print(&request, format)?;
    }
    Ok(exit)
}

/// Waits for the end of a request; `request` is what was last seen of it.
async fn wait(
    cluster: &Cluster,
    args: &RestartArgs,
    request: &mut ContainerRecreateRequest,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
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

async fn watch(
    cluster: &Cluster,
    request: &mut ContainerRecreateRequest,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let name = request.name_any();
    let start = Instant::now();
    let mut changes = pin!(cluster.watch_request(&name));
    let mut second = interval(REPAINT);
    let mut told = Vec::new();
    loop {
        let news = tokio::select! {
            news = changes.try_next() => news?,
            _ = second.tick(), if screen.is_live() => None,
        };
        match news {
            Some(News::Gone(_)) => return deleted(request, screen),
            Some(News::All(mut all)) => match all.pop() {
                Some(now) => *request = now,
                None => return deleted(request, screen),
            },
            Some(News::Is(now)) => *request = now,
            Some(News::Broken(why)) => screen.warn(&format!("watching {name}: {why}"))?,
            None => {}
        }
        let now = lines(request);
        for line in now.iter().filter(|line| !told.contains(*line)) {
            screen.step(line)?;
        }
        told = now;
        let exit = match outcome(request) {
            Some(Outcome::Succeeded) => Exit::Done,
            Some(Outcome::Failed) => Exit::Failed,
            None => {
                let block = progress::of_request(request, start.elapsed(), screen.size().0);
                screen.paint(block)?;
                continue;
            }
        };
        screen.clear()?;
        if screen.is_live() {
            let tone = if exit == Exit::Done {
                Tone::Good
            } else {
                Tone::Bad
            };
            told.iter().try_for_each(|line| screen.line(line, tone))?;
        }
        return Ok(exit);
    }
}

fn deleted(request: &ContainerRecreateRequest, screen: &mut Screen) -> Result<Exit, Failure> {
    let pod = &request.spec.pod_name;
    screen.line(
        &format!("{pod}: FAILED (the request was deleted)"),
        Tone::Bad,
    )?;
    Ok(Exit::Failed)
}

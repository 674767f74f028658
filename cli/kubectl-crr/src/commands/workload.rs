//! `restart` of several pods: those of a workload, or those with labels.
//!
//! Owns the loop of watches, planning and requests. `members` chooses the pods, `restarts` holds their state.

use std::pin::pin;

use futures::TryStreamExt;
use k8s_api::crd::ContainerRecreateRequest as Crr;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher;
use model::labels;
use tokio::{
    signal::ctrl_c,
    time::{Instant, interval, sleep_until},
};

use crate::{
    args::{DryRun, RestartArgs},
    cluster::Cluster,
    failure::{Exit, Failure, Result},
    members::{Group, Member, Order, group},
    output, progress,
    request::{random_restart_id, request},
    restarts::{Limits, Restarts},
    rollout::Plan,
    screen::{self, Line, REPAINT, Screen},
    values::Kind,
};

struct Run<'a> {
    cluster: &'a Cluster,
    args: &'a RestartArgs,
    /// Label value that all requests of this command share.
    restart_id: String,
    restarts: Restarts,
    screen: Screen,
    start: Instant,
}

pub(super) async fn run(cluster: &Cluster, args: &RestartArgs) -> Result<Exit> {
    let (selector, group) = fetch_group(cluster, args).await?;
    let mut screen = Screen::of_process(args.output.is_some());
    let mut left_out = group.left_out.iter().cloned().map(Line::Plain);
    left_out.try_for_each(|line| screen.print(&line))?;
    if group.members.is_empty() {
        return end_without_pods(args, &selector, &mut screen);
    }
    check_containers(&group, &args.containers)?;
    if args.dry_run.is_some() {
        return show(cluster, args, &group).await;
    }
    let limits = Limits {
        max_unavailable: args.max_unavailable.of(group.members.len()),
        keeps_going: args.keep_going,
        patience: args.timeout,
    };
    let run = Run {
        cluster,
        args,
        restart_id: random_restart_id(),
        restarts: Restarts::new(&group, limits),
        screen,
        start: Instant::now(),
    };
    run.run_to_the_end(&selector).await
}

/// The pods, and the labels that select them.
async fn fetch_group(cluster: &Cluster, args: &RestartArgs) -> Result<(String, Group)> {
    let Some(target) = &args.target else {
        let selector = args.selector.clone();
        let missing = || Failure("give a POD, a TYPE/NAME or -l".to_owned());
        let selector = selector.ok_or_else(missing)?;
        let pods = cluster.fetch_pods(&selector).await?;
        return Ok((selector, group(&pods, None, Order::NodeThenName)));
    };
    let workload = cluster.fetch_workload(target).await?;
    let pods = cluster.fetch_pods(&workload.selector).await?;
    let order = match target.kind {
        Kind::StatefulSet => Order::HighestOrdinalFirst,
        Kind::Deployment | Kind::DaemonSet | Kind::Pod => Order::NodeThenName,
    };
    let group = group(&pods, Some(&workload.controllers), order);
    Ok((workload.selector, group))
}

/// A workload may have no pods at the moment; labels without pods are a mistake.
fn end_without_pods(args: &RestartArgs, selector: &str, screen: &mut Screen) -> Result<Exit> {
    let Some(target) = &args.target else {
        let problem = format!("--selector: no pod with {selector} can be restarted");
        return Err(Failure(problem));
    };
    let line = format!("{target} has no pod that can be restarted");
    screen.print(&Line::Plain(line))?;
    if let Some(format) = args.output {
        output::print_all(&[], format)?;
    }
    Ok(Exit::Done)
}

/// Fails on a name that a pod lacks, before the first restart.
fn check_containers(group: &Group, wanted: &[String]) -> Result<()> {
    for member in &group.members {
        let (pod, all) = (&member.name, &member.containers);
        if let Some(name) = wanted.iter().find(|name| !all.contains(name)) {
            let problem = format!("--container: pod {pod} has no container {name}");
            return Err(Failure(format!("{problem}; it has {}", all.join(", "))));
        }
    }
    Ok(())
}

/// `--dry-run`: prints the requests in order.
async fn show(cluster: &Cluster, args: &RestartArgs, group: &Group) -> Result<Exit> {
    let (mut requests, restart_id) = (Vec::new(), random_restart_id());
    for member in &group.members {
        let mut request = request_for(cluster, args, member, &restart_id);
        if args.dry_run == Some(DryRun::Server) {
            request = cluster.create(&request, true).await?;
        }
        requests.push(request);
    }
    match args.output {
        Some(format) => output::print_all(&requests, format)?,
        None => {
            let mut lines = requests.iter().map(|it| output::made(it, args.dry_run));
            lines.try_for_each(|line| output::say(&line))?;
        }
    }
    Ok(Exit::Done)
}

fn request_for(cluster: &Cluster, args: &RestartArgs, member: &Member, restart_id: &str) -> Crr {
    let (namespace, all) = (&cluster.namespace, &member.containers);
    request(args, namespace, &member.name, all, restart_id)
}

// === impl Run ===

impl Run<'_> {
    async fn run_to_the_end(mut self, selector: &str) -> Result<Exit> {
        let label = format!("{}={}", labels::RESTART, self.restart_id);
        let end = tokio::select! {
            end = self.drive(selector, &label) => end.map(|()| None),
            _ = ctrl_c() => Ok(Some(Exit::Interrupted)),
        };
        self.screen.clear()?;
        self.print_lines()?;
        let tally = self.restarts.tally();
        if end.is_ok() || tally.begun() > 0 {
            let namespace = &self.cluster.namespace;
            let look = format!("look further: kubectl crr list -n {namespace} -l {label}");
            for line in tally.lines().into_iter().chain([look]) {
                self.screen.print(&Line::Plain(line))?;
            }
        }
        let exit = end?.unwrap_or_else(|| tally.exit());
        if let Some(format) = self.args.output {
            let entries = self.restarts.entries.into_iter();
            let requests: Vec<_> = entries.filter_map(|entry| entry.request).collect();
            output::print_all(&requests, format)?;
        }
        Ok(exit)
    }

    async fn drive(&mut self, selector: &str, label: &str) -> Result<()> {
        let with_labels = |labels: &str| watcher::Config::default().labels(labels);
        let mut pods = pin!(self.cluster.watch::<Pod>(with_labels(selector)));
        let mut requests = pin!(self.cluster.watch(with_labels(label)));
        let mut second = interval(REPAINT);
        loop {
            let deadline = self.restarts.next_deadline();
            let deadline = deadline.map(|after| self.start + after);
            tokio::select! {
                news = pods.try_next() => news?.into_iter().for_each(|it| self.restarts.on_pods(it)),
                news = requests.try_next() => news?.into_iter().for_each(|it| self.restarts.on_requests(it)),
                () = until(deadline) => {}
                _ = second.tick(), if self.screen.is_live() => {}
            }
            let is_over = self.advance().await?;
            self.print_lines()?;
            if is_over {
                return Ok(());
            }
            if self.screen.is_live() {
                let (elapsed, size) = (self.start.elapsed(), screen::size());
                let block = progress::of_group(&self.restarts, elapsed, size);
                self.screen.paint(block)?;
            }
        }
    }

    /// Begins every pod that may begin; true at the end of all.
    async fn advance(&mut self) -> Result<bool> {
        loop {
            match self.restarts.plan(self.start.elapsed()) {
                Plan::Begin(pods) => self.begin(&pods).await?,
                Plan::Wait | Plan::NoRoom => return Ok(false),
                Plan::End { .. } => return Ok(true),
            }
        }
    }

    /// Makes requests for these pods until one is refused.
    async fn begin(&mut self, pods: &[String]) -> Result<()> {
        for pod in pods {
            let Some(member) = self.restarts.begin(pod, self.start.elapsed()) else {
                continue;
            };
            let request = request_for(self.cluster, self.args, member, &self.restart_id);
            match self.cluster.create(&request, false).await {
                Ok(request) => self.restarts.made(request),
                Err(failure) => {
                    self.restarts.refused(pod, &failure.in_one_line());
                    return Ok(());
                }
            }
            self.print_lines()?;
        }
        Ok(())
    }

    fn print_lines(&mut self) -> Result<()> {
        let lines = self.restarts.take_lines();
        lines.iter().try_for_each(|line| self.screen.print(line))
    }
}

/// Waits forever without a deadline.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_that_a_pod_lacks_is_told_before_the_first_restart() {
        let member = |name: &str, containers: &[&str]| Member {
            name: name.to_owned(),
            uid: name.to_owned(),
            containers: containers.iter().map(ToString::to_string).collect(),
        };
        let group = Group {
            members: vec![member("a", &["app", "proxy"]), member("b", &["app"])],
            ..Group::default()
        };
        for (wanted, told) in [
            (&["app"][..], None),
            (&[], None),
            (
                &["proxy"],
                Some("--container: pod b has no container proxy; it has app"),
            ),
            (
                &["app", "x"],
                Some("--container: pod a has no container x; it has app, proxy"),
            ),
        ] {
            let wanted: Vec<_> = wanted.iter().map(ToString::to_string).collect();
            let problem = check_containers(&group, &wanted).err();
            assert_eq!(problem.map(|it| it.to_string()).as_deref(), told);
        }
    }
}

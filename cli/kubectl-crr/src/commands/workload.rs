//! `restart` of several pods: a workload's, or those with labels.
//!
//! Owns the loop of watching, planning and asking. Which pods those are is `members`', how far they are `restarts`'.

use std::pin::pin;

use futures::TryStreamExt;
use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::Pod;
use model::labels;
use tokio::{
    signal::ctrl_c,
    time::{Instant, interval, sleep_until},
};

use crate::{
    args::{DryRun, RestartArgs},
    clock,
    cluster::{Cluster, News},
    failure::{Exit, Failure},
    members::{Group, Member, Order, group},
    output, progress,
    request::request,
    restarts::{Limits, Restarts, Said},
    rollout::{OnFailure, Plan},
    screen::{REPAINT, Screen, Tone},
    target::{Kind, Target},
};

/// Whose pods are to be restarted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked<'a> {
    Workload(&'a Target),
    Labels(&'a str),
}

/// One command's way through its pods.
struct Run<'a> {
    cluster: &'a Cluster,
    args: &'a RestartArgs,
    /// What all requests of this command share.
    word: String,
    restarts: Restarts,
    screen: Screen,
    start: Instant,
}

/// Restarts the pods, and waits for them.
pub(super) async fn run(
    cluster: &Cluster,
    args: &RestartArgs,
    asked: Asked<'_>,
) -> Result<Exit, Failure> {
    let (selector, group) = fetch_group(cluster, asked).await?;
    let mut screen = Screen::of_process(args.output.is_some());
    for line in &group.left_out {
        screen.line(line, Tone::Plain)?;
    }
    if group.members.is_empty() {
        return nothing(asked, args, &mut screen);
    }
    check_containers(&group, &args.containers)?;
    let word = clock::random_word();
    if let Some(dry_run) = args.dry_run {
        let is_checked = dry_run == DryRun::Server;
        return show(cluster, args, &group, &word, is_checked).await;
    }
    let limits = Limits {
        max_unavailable: args.max_unavailable.of(group.members.len()),
        on_failure: if args.keep_going {
            OnFailure::KeepGoing
        } else {
            OnFailure::Stop
        },
        patience: args.timeout,
    };
    let run = Run {
        cluster,
        args,
        word,
        restarts: Restarts::new(&group, limits),
        screen,
        start: Instant::now(),
    };
    run.drive_to_the_end(&selector).await
}

async fn fetch_group(cluster: &Cluster, asked: Asked<'_>) -> Result<(String, Group), Failure> {
    match asked {
        Asked::Labels(labels) => {
            let pods = cluster.fetch_pods(labels).await?;
            Ok((labels.to_owned(), group(&pods, None, Order::NodeThenName)))
        }
        Asked::Workload(target) => {
            let workload = cluster.fetch_workload(target).await?;
            let pods = cluster.fetch_pods(&workload.selector).await?;
            let order = match target.kind {
                Kind::StatefulSet => Order::HighestOrdinalFirst,
                Kind::Deployment | Kind::DaemonSet | Kind::Pod => Order::NodeThenName,
            };
            let group = group(&pods, Some(&workload.controllers), order);
            Ok((workload.selector, group))
        }
    }
}

/// A workload may well have no pods now; labels that no pod has are a mistake.
fn nothing(asked: Asked<'_>, args: &RestartArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    match asked {
        Asked::Labels(labels) => {
            let problem = format!("--selector: no pod with {labels} can be restarted");
            Err(Failure::Usage(problem))
        }
        Asked::Workload(target) => {
            let line = format!("{target} has no pod that can be restarted");
            screen.line(&line, Tone::Plain)?;
            if let Some(format) = args.output {
                output::print_all(&[], format)?;
            }
            Ok(Exit::Done)
        }
    }
}

/// A name that a pod lacks would stop us in the middle: better before the first.
fn check_containers(group: &Group, wanted: &[String]) -> Result<(), Failure> {
    for member in &group.members {
        let mut wanted = wanted.iter();
        if let Some(name) = wanted.find(|name| !member.containers.contains(name)) {
            let (pod, all) = (&member.name, member.containers.join(", "));
            let problem = format!("--container: pod {pod} has no container {name}; it has {all}");
            return Err(Failure::Usage(problem));
        }
    }
    Ok(())
}

/// `--dry-run`: every request that would be made, in order.
async fn show(
    cluster: &Cluster,
    args: &RestartArgs,
    group: &Group,
    word: &str,
    is_checked: bool,
) -> Result<Exit, Failure> {
    let mut requests = Vec::new();
    for member in &group.members {
        let mut request = request_for(cluster, args, member, word);
        if is_checked {
            request = cluster.create(&request, true).await?;
        }
        requests.push(request);
    }
    if let Some(format) = args.output {
        output::print_all(&requests, format)?;
        return Ok(Exit::Done);
    }
    for request in &requests {
        output::say(&output::made(request, args.dry_run))?;
    }
    Ok(Exit::Done)
}

fn request_for(
    cluster: &Cluster,
    args: &RestartArgs,
    member: &Member,
    word: &str,
) -> ContainerRecreateRequest {
    let containers = if args.containers.is_empty() {
        &member.containers
    } else {
        &args.containers
    };
    let mut request = request(args, &member.name, containers, word);
    request.metadata.namespace = Some(cluster.namespace.clone());
    request
}

// === impl Run ===

impl Run<'_> {
    async fn drive_to_the_end(mut self, selector: &str) -> Result<Exit, Failure> {
        let end = tokio::select! {
            end = self.drive(selector) => end.map(|()| None),
            _ = ctrl_c() => Ok(Some(Exit::Interrupted)),
        };
        self.screen.clear()?;
        self.tell()?;
        let tally = self.restarts.tally();
        if end.is_ok() || tally.is_any_begun() {
            let (namespace, label) = (&self.cluster.namespace, self.label());
            for line in tally.lines() {
                self.screen.line(&line, Tone::Plain)?;
            }
            let look = format!("look further: kubectl crr list -n {namespace} -l {label}");
            self.screen.line(&look, Tone::Plain)?;
        }
        let exit = end?.unwrap_or_else(|| tally.exit());
        if let Some(format) = self.args.output {
            let entries = self.restarts.entries.into_iter();
            let requests: Vec<_> = entries.filter_map(|entry| entry.request).collect();
            output::print_all(&requests, format)?;
        }
        Ok(exit)
    }

    fn label(&self) -> String {
        format!("{}={}", labels::RESTART, self.word)
    }

    async fn drive(&mut self, selector: &str) -> Result<(), Failure> {
        let mut pods = pin!(self.cluster.watch_pods(selector));
        let mut requests = pin!(self.cluster.watch_requests(&self.label()));
        let mut second = interval(REPAINT);
        loop {
            let deadline = self.restarts.next_deadline();
            let deadline = deadline.map(|after| self.start + after);
            tokio::select! {
                news = pods.try_next() => self.on_pods(news?)?,
                news = requests.try_next() => self.on_requests(news?)?,
                () = until(deadline) => {}
                _ = second.tick(), if self.screen.is_live() => {}
            }
            let is_over = self.advance().await?;
            self.tell()?;
            if is_over {
                return Ok(());
            }
            if self.screen.is_live() {
                let size = self.screen.size();
                let block = progress::of_group(&self.restarts, self.start.elapsed(), size);
                self.screen.paint(block)?;
            }
        }
    }

    fn on_pods(&mut self, news: Option<News<Pod>>) -> Result<(), Failure> {
        if let Some(News::Broken(why)) = &news {
            self.screen.warn(&format!("watching the pods: {why}"))?;
        }
        news.into_iter()
            .for_each(|news| self.restarts.on_pods(news));
        Ok(())
    }

    fn on_requests(&mut self, news: Option<News<ContainerRecreateRequest>>) -> Result<(), Failure> {
        if let Some(News::Broken(why)) = &news {
            self.screen.warn(&format!("watching the requests: {why}"))?;
        }
        news.into_iter()
            .for_each(|news| self.restarts.on_requests(news));
        Ok(())
    }

    /// Begins what may begin; whether all is over.
    async fn advance(&mut self) -> Result<bool, Failure> {
        loop {
            match self.restarts.plan(self.start.elapsed()) {
                Plan::Begin(pods) => self.begin(&pods).await?,
                Plan::Wait | Plan::NoRoom => return Ok(false),
                Plan::End { .. } => return Ok(true),
            }
        }
    }

    /// Makes requests for these pods until one is refused.
    async fn begin(&mut self, pods: &[String]) -> Result<(), Failure> {
        for pod in pods {
            let Some(member) = self.restarts.begin(pod, self.start.elapsed()) else {
                continue;
            };
            let request = request_for(self.cluster, self.args, member, &self.word);
            match self.cluster.create(&request, false).await {
                Ok(request) => self.restarts.made(request),
                Err(failure) => {
                    self.restarts.refused(pod, failure.in_one_line());
                    return Ok(());
                }
            }
            self.tell()?;
        }
        Ok(())
    }

    fn tell(&mut self) -> Result<(), Failure> {
        for said in self.restarts.take_said() {
            match said {
                Said::Step(line) => self.screen.step(&line)?,
                Said::Well(line) => self.screen.line(&line, Tone::Good)?,
                Said::Badly(line) => self.screen.line(&line, Tone::Bad)?,
            }
        }
        Ok(())
    }
}

/// Never, where there is no deadline.
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

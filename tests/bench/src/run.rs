//! The order of a measurement: a cluster, phases, traces, the audit log, memory, the report.

use std::{ffi::OsString, process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use clap::Parser;
use cluster::{Cluster, say};
use e2e::{Installation, Space, enter_if_asked, our_cluster, run_on_stage};
use service_kit::clock;
use tokio::time::{sleep, timeout};

use crate::{
    args::{Args, Crr, Phase, What},
    audit, bare, launch,
    many::{self, Many},
    measured::{Api, Measured},
    memory, pods,
    report::{self, Report},
    sample::Sample,
    watch::Watch,
};

/// More than two hundred samples take.
const LONGEST: Duration = Duration::from_secs(1500);

/// Measures what the command line asks for.
///
/// # Errors
/// There is no cluster to measure on, or a request did not succeed.
pub async fn run() -> Result<ExitCode> {
    if let Some(end) = enter_if_asked().await {
        return end;
    }
    let Args { what, here } = Args::parse();
    if !here {
        let ourselves = std::env::current_exe().context("failed to find this program")?;
        let words = std::env::args_os()
            .skip(1)
            .chain([OsString::from("--here")]);
        let command: Vec<_> = [ourselves.into_os_string()]
            .into_iter()
            .chain(words)
            .collect();
        return run_on_stage(&command, false).await;
    }
    let space = Space::create("bench").await?;
    let report = timeout(LONGEST, report(&space, what)).await;
    space.remove().await?;
    let report = report.context("it took too long")??;
    report.print();
    let path = report.keep()?;
    say(format_args!("\nraw figures: {}", path.display()));
    Ok(ExitCode::SUCCESS)
}

async fn report(space: &Space, what: What) -> Result<Report> {
    Installation::new(&space.client).wait_whole().await?;
    match what {
        What::Crr(options) => Ok(report::of_crr(&measure(space, &options).await?)),
        What::Launch(options) => Ok(launch::measure(space, &options).await?.report()),
    }
}

async fn measure(space: &Space, options: &Crr) -> Result<Measured> {
    let mut bench = Bench {
        space,
        cluster: our_cluster()?,
        watch: Watch::begin(space).await,
        measured: Measured::begin(clock::now()),
    };
    let mut phases = options.phases.clone();
    phases.sort();
    phases.dedup();
    for phase in phases {
        say(format_args!("{phase}:"));
        let began_at = clock::now();
        let requests = match phase {
            Phase::Alone => bench.alone(options.count).await?,
            Phase::Bare => bench.bare(options.count).await?,
            Phase::Row => bench.row(options.row).await?,
            Phase::Together => bench.together(options.together as usize).await?,
            Phase::Burst => bench.burst(options.burst as usize).await?,
        };
        pods::remove(space).await?;
        if let (Some(cluster), 1..) = (&bench.cluster, requests) {
            let counts = audit::count(&cluster.audit_log(), began_at, clock::now())?;
            bench.measured.api.push(Api {
                phase,
                requests,
                counts,
            });
        }
    }
    bench.measured.memory = memory::resident();
    Ok(bench.measured)
}

struct Bench<'a> {
    space: &'a Space,
    /// None where the cluster is not ours.
    cluster: Option<Cluster>,
    watch: Watch,
    measured: Measured,
}

// === impl Bench ===

/// Each phase gives how many requests it made.
impl Bench<'_> {
    async fn alone(&mut self, count: u32) -> Result<usize> {
        let mut samples = Vec::new();
        for index in 1..=count {
            let name = self.fresh("fresh", index, count).await?;
            let sample = Sample::take(self.space, &mut self.watch, (&name, &name), 2).await?;
            tell(index, count, sample.until_completed);
            pods::drop_one(self.space, &name).await?;
            samples.push(sample);
        }
        let measured = &mut self.measured;
        for sample in &samples {
            measured.until_completed.push(sample.until_completed);
            let waited = sample.after_ready();
            measured.from_ready_to_completed.push(waited);
            let stop = sample.stop(self.space).await?;
            measured.until_stop.push(stop.after);
        }
        Ok(samples.len())
    }

    async fn bare(&mut self, count: u32) -> Result<usize> {
        for index in 1..=count {
            let Some(cluster) = self.cluster.clone() else {
                say("left out: only on our own test cluster can we call a node's runtime");
                return Ok(0);
            };
            let name = self.fresh("bare", index, count).await?;
            let took = bare::stop(self.space, &cluster, &mut self.watch, &name).await?;
            tell(index, count, took);
            pods::drop_one(self.space, &name).await?;
            self.measured.bare.push(took);
        }
        Ok(0)
    }

    async fn row(&mut self, count: u32) -> Result<usize> {
        let pod = "row".to_owned();
        pods::start(self.space, &mut self.watch, std::slice::from_ref(&pod)).await?;
        let mut samples = Vec::new();
        for index in 1..=count {
            let name = format!("row-{index}");
            let instance = index as usize + 1;
            let take = Sample::take(self.space, &mut self.watch, (&name, &pod), instance);
            let sample = take.await?;
            tell(index, count, sample.until_completed);
            samples.push(sample);
        }
        for sample in &samples {
            let stop = sample.stop(self.space).await?;
            self.measured.row.push((sample.until_completed, stop.took));
        }
        Ok(samples.len())
    }

    async fn together(&mut self, count: usize) -> Result<usize> {
        let many = self.many("together", count, &["main"]).await?;
        self.measured.together = Some(many);
        if let Some(cluster) = self.cluster.clone() {
            let pods: Vec<_> = (1..=count).map(|index| format!("floor-{index}")).collect();
            pods::start(self.space, &mut self.watch, &pods).await?;
            let took = bare::stop_all(self.space, &cluster, &mut self.watch, &pods).await?;
            self.measured.bare_together = Some(took);
        }
        Ok(count)
    }

    async fn burst(&mut self, wanted: usize) -> Result<usize> {
        let count = pods::fitting(self.space, wanted).await?;
        if count < wanted {
            say(format_args!(
                "{count} pods and not {wanted}: the kubelets' limits allow no more"
            ));
        }
        let many = self.many("burst", count, &pods::CONTAINERS).await?;
        self.measured.burst = Some(many);
        Ok(count * pods::CONTAINERS.len())
    }

    async fn many(&mut self, name: &str, count: usize, containers: &[&str]) -> Result<Many> {
        let names: Vec<_> = (1..=count).map(|index| format!("{name}-{index}")).collect();
        pods::start(self.space, &mut self.watch, &names).await?;
        say(format_args!("{count} pods are ready"));
        many::recreate(self.space, &mut self.watch, &names, containers).await
    }

    /// A pod that has just become ready. The kubelet looks for stopped containers once a second, and a pod becomes
    /// ready right after a look: so each one's moment is at another part of a second.
    async fn fresh(&mut self, name: &str, index: u32, count: u32) -> Result<String> {
        let name = format!("{name}-{index}");
        pods::start(self.space, &mut self.watch, std::slice::from_ref(&name)).await?;
        let part = f64::from(index) / f64::from(count);
        sleep(Duration::from_secs_f64(part)).await;
        Ok(name)
    }
}

fn tell(index: u32, count: u32, took: Duration) {
    let seconds = took.as_secs_f64();
    say(format_args!("{index:>3} of {count}  {seconds:.3} s"));
}

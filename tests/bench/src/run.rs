//! The order of a measurement: a cluster, samples, traces, the audit log, memory, the report.

use std::{ffi::OsString, process::ExitCode, time::Duration};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use cluster::say;
use e2e::{Installation, Space, enter_if_asked, our_cluster, run_on_stage};
use service_kit::clock;
use tokio::time::timeout;

use crate::{
    args::{Args, What},
    audit, memory,
    report::Report,
    sample::Sample,
};

/// More than two hundred samples take.
const LONGEST: Duration = Duration::from_secs(900);

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
    let What::Crr { count } = what;
    let space = Space::create("bench").await?;
    let measured = timeout(LONGEST, measure(&space, count)).await;
    space.remove().await?;
    let report = measured.context("it took too long")??;
    report.print();
    let path = report.keep()?;
    say(format_args!("\nraw figures: {}", path.display()));
    Ok(ExitCode::SUCCESS)
}

async fn measure(space: &Space, count: u32) -> Result<Report> {
    Installation::new(&space.client).wait_whole().await?;
    let began_at = clock::now();
    let mut samples = Vec::new();
    for index in 1..=count {
        let sample = Sample::take(space, index, f64::from(index) / f64::from(count)).await?;
        let took = sample.until_completed.as_secs_f64();
        say(format_args!("{index:>3} of {count}  {took:.3} s"));
        ensure!(
            sample.has_succeeded,
            "request fresh-{index} did not succeed"
        );
        samples.push(sample);
    }
    let ended_at = clock::now();
    let memory = memory::resident();
    let mut until_stop = Vec::new();
    for sample in &samples {
        until_stop.push(sample.until_stop(space).await?);
    }
    let log = our_cluster()?.map(|cluster| cluster.audit_log());
    Ok(Report {
        began_at,
        until_completed: samples
            .iter()
            .map(|sample| sample.until_completed)
            .collect(),
        until_stop,
        api_requests: log
            .map(|log| audit::count(&log, began_at, ended_at))
            .transpose()?,
        memory,
    })
}

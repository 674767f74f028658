//! Requests on many pods at the same moment.

use std::time::Duration;

use anyhow::Result;
use cluster::say;
use e2e::{Space, spec};
use futures::future::try_join_all;
use tokio::time::Instant;

use crate::{seen::Seen, watch::Watch};

const UNTIL_LOST: Duration = Duration::from_secs(150);

/// What became of them.
#[derive(Default)]
pub(crate) struct Many {
    /// From each one's creation until it was seen Completed.
    pub(crate) each: Vec<Duration>,
    /// From the first creation until the last was seen Completed.
    pub(crate) until_last: Duration,
    /// Not Succeeded after all that time.
    pub(crate) lost: Vec<String>,
}

/// One request for each of the containers of each of the pods.
pub(crate) async fn recreate(
    space: &Space,
    watch: &mut Watch,
    pods: &[String],
    containers: &[&str],
) -> Result<Many> {
    let of_pod = |pod| containers.iter().map(move |container| (pod, *container));
    let wanted: Vec<(&String, &str)> = pods.iter().flat_map(of_pod).collect();
    let first = Instant::now();
    let begun = try_join_all(wanted.iter().map(async |(pod, container)| {
        let begin = Instant::now();
        let name = name(pod, container);
        let created = space.request(&name, spec(pod, &[container])).await;
        created.map(|_| begin)
    }))
    .await?;
    say(format_args!(
        "all created after {:.3} s",
        first.elapsed().as_secs_f64()
    ));
    let all = |seen: &Seen| {
        let is_completed = |(pod, of): &(&String, &str)| seen.completed(&name(pod, of)).is_some();
        wanted.iter().all(is_completed).then_some(())
    };
    if let Err(error) = watch.until("all to be Completed", UNTIL_LOST, all).await {
        say(format_args!("{error:#}"));
    }
    let mut many = Many::default();
    for ((pod, container), begin) in wanted.iter().zip(begun) {
        let name = name(pod, container);
        if let Some((at, _)) = watch.seen.completed(&name) {
            many.each.push(*at - begin);
            many.until_last = many.until_last.max(*at - first);
        }
        if !watch.seen.has_succeeded(&name, container) {
            many.lost.push(name);
        }
    }
    Ok(many)
}

fn name(pod: &str, container: &str) -> String {
    format!("{pod}-{container}")
}

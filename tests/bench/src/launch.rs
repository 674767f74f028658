//! Launches level by level, beside the same pods without priorities.

mod figures;
mod idle;

use std::time::Duration;

use anyhow::Result;
use cluster::{Cluster, say};
use e2e::{Ordered, Space, our_cluster};
use futures::future::try_join_all;
use serde_json::json;
use service_kit::clock;
use tokio::time::Instant;

use self::figures::{Many, Measured, Sample};
use crate::{args::Launch, audit, memory, pods, watch::Watch};

/// What a pod with a level for each of its containers is compared with.
const LEVELS: [usize; 3] = [2, 3, 5];

/// More than a level may be stuck, for each.
const UNTIL_READY: Duration = Duration::from_secs(240);

/// A pod to be: so many containers, each a level of its own or none at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    containers: usize,
    is_ordered: bool,
    is_probed: bool,
}

/// Measures each kind of pod alone, then many at once.
pub(crate) async fn measure(space: &Space, options: &Launch) -> Result<Measured> {
    let began_at = clock::now();
    let cluster = our_cluster()?;
    let mut bench = Bench {
        space,
        cluster,
        watch: Watch::begin(space).await,
        next: 0,
    };
    let mut measured = Measured::begin(began_at);
    if let Some(count) = options.idle {
        idle::hold(space, count).await?;
        measured.memory = memory::resident();
        // They go with the namespace: no node has to end them.
        return Ok(measured);
    }
    for containers in LEVELS {
        for is_probed in [false, true] {
            for is_ordered in [false, true] {
                let kind = Kind {
                    containers,
                    is_ordered,
                    is_probed,
                };
                measured
                    .samples
                    .push(bench.alone(kind, options.count).await?);
            }
        }
    }
    let together = options.together as usize;
    for (count, is_ordered) in [(together, false), (together, true), (together * 2, true)] {
        let count = pods::fitting(space, count).await?;
        measured
            .together
            .push(bench.together(count, is_ordered).await?);
    }
    measured.memory = memory::resident();
    Ok(measured)
}

struct Bench<'a> {
    space: &'a Space,
    /// None where the cluster is not ours.
    cluster: Option<Cluster>,
    watch: Watch,
    next: usize,
}

// === impl Bench ===

impl Bench<'_> {
    async fn alone(&mut self, kind: Kind, count: u32) -> Result<Sample> {
        let began_at = clock::now();
        let mut sample = Sample::of(kind);
        for _ in 0..count {
            let name = self.name();
            let begin = Instant::now();
            self.space.create_ordered(&plan(&name, kind)).await?;
            let mut ready = self.ready(&name, kind.containers).await?;
            ready.sort();
            let mut above = begin;
            sample.levels.extend(ready.iter().map(|at| {
                let took = at.duration_since(above);
                above = *at;
                took
            }));
            sample.until_ready.push(above - begin);
            pods::drop_one(self.space, &name).await?;
        }
        pods::remove(self.space).await?;
        if let Some(cluster) = &self.cluster {
            let counts = audit::count(&cluster.audit_log(), began_at, clock::now())?;
            sample.writes = figures::writes(&counts, count);
        }
        say(sample.line());
        Ok(sample)
    }

    async fn together(&mut self, count: usize, is_ordered: bool) -> Result<Many> {
        let kind = Kind {
            containers: 2,
            is_ordered,
            is_probed: false,
        };
        let names: Vec<_> = (0..count).map(|_| self.name()).collect();
        let begin = Instant::now();
        try_join_all(names.iter().map(async |name| {
            let plan = plan(name, kind);
            self.space.create_ordered(&plan).await
        }))
        .await?;
        let mut each = Vec::new();
        for name in &names {
            let ready = self.ready(name, kind.containers).await?;
            each.extend(ready.iter().max().map(|at| *at - begin));
        }
        pods::remove(self.space).await?;
        let many = Many { is_ordered, each };
        say(many.line());
        Ok(many)
    }

    /// When each of a pod's containers was first seen ready.
    async fn ready(&mut self, pod: &str, containers: usize) -> Result<Vec<Instant>> {
        let mut times = Vec::new();
        for index in 0..containers {
            let container = format!("c{index}");
            let what = format!("container {container} of {pod} to be ready");
            let ready = self.watch.until(&what, UNTIL_READY, |seen| {
                seen.ready(pod, &container, 1).map(|(_, at)| *at)
            });
            times.push(ready.await?);
        }
        Ok(times)
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("launch-{}", self.next)
    }
}

fn plan(name: &str, kind: Kind) -> Ordered {
    let plan = (0..kind.containers).fold(Ordered::new(name), |plan, index| {
        let priority = (index + 1).to_string();
        let priority = kind.is_ordered.then_some(&*priority);
        let plan = plan.container(&format!("c{index}"), priority);
        plan.changed(|container| {
            if kind.is_probed {
                let probe = json!({ "exec": { "command": ["true"] }, "periodSeconds": 1 });
                container["readinessProbe"] = probe;
            }
        })
    });
    plan.with("terminationGracePeriodSeconds", json!(1))
}

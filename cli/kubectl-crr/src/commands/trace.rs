//! `trace`: the spans of one request.

use kube::ResourceExt;
use trace_tree::Trace;

use crate::{
    args::{Machine, TraceArgs},
    cluster::{Cluster, Jaeger},
    failure::{Exit, Failure},
    output,
    trace::trace_of,
};

/// Shows a request's trace.
pub(super) async fn run(
    cluster: &Cluster,
    jaeger: &Jaeger,
    args: &TraceArgs,
) -> Result<Exit, Failure> {
    let request = cluster.fetch_request(&args.request).await?;
    let id = trace_of(&request)?;
    let answer = jaeger.fetch_trace(&request.name_any(), &id).await?;
    match args.output {
        Some(Machine::Json) => output::print_json(&answer)?,
        None => {
            let trace = Trace::read(&id, &answer);
            let lines = trace.map(|trace| [vec![trace.head()], trace.lines()].concat());
            let mut lines = lines.into_iter().flatten();
            lines.try_for_each(|line| output::say(&line))?;
        }
    }
    Ok(Exit::Done)
}

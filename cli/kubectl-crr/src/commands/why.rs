//! `why`: a request or a pod explained.

use k8s_api::crd::ContainerRecreateRequest;
use k8s_openapi::api::core::v1::Pod;
use serde::Serialize;

use crate::{
    args::{Machine, WhyArgs},
    cluster::Cluster,
    failure::{Exit, Failure},
    output,
    subject::Subject,
    why::{PodStory, RequestExplained},
};

/// Explains.
pub(super) async fn run(cluster: &Cluster, args: WhyArgs) -> Result<Exit, Failure> {
    match args.subject {
        Subject::Request(name) => {
            let request = cluster.fetch_request(&name).await?;
            explain_request(cluster, &request, args.output).await
        }
        Subject::Pod(name) => {
            let pod = cluster.fetch_pod(&name).await?;
            explain_pod(cluster, pod, args.output).await
        }
        Subject::Either(name) => {
            if let Some(request) = cluster.find_request(&name).await? {
                return explain_request(cluster, &request, args.output).await;
            }
            let Some(pod) = cluster.find_pod(&name).await? else {
                let space = &cluster.namespace;
                let problem =
                    format!("there is neither a request nor a pod {name} in namespace {space}");
                return Err(Failure::Missing(problem));
            };
            explain_pod(cluster, pod, args.output).await
        }
    }
}

async fn explain_request(
    cluster: &Cluster,
    request: &ContainerRecreateRequest,
    output: Option<Machine>,
) -> Result<Exit, Failure> {
    let events = cluster.fetch_events(request).await?;
    let story = RequestExplained::new(request, &events);
    tell(&story, &story.lines(), output)
}

async fn explain_pod(
    cluster: &Cluster,
    pod: Pod,
    output: Option<Machine>,
) -> Result<Exit, Failure> {
    let story = PodStory::new(&cluster.fetch_story(pod).await?);
    tell(&story, &story.lines(), output)
}

fn tell(
    story: &impl Serialize,
    lines: &[String],
    output: Option<Machine>,
) -> Result<Exit, Failure> {
    match output {
        Some(Machine::Json) => output::print_json(story)?,
        None => lines.iter().try_for_each(|line| output::say(line))?,
    }
    Ok(Exit::Done)
}

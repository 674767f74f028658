//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{ArgGroup, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::values::{
    JaegerService, MaxUnavailable, Subject, Target, parse_duration, parse_request, parse_selector,
    parse_url,
};

/// Restart containers of running pods in place, and see what has become of it.
#[derive(Debug, Parser)]
#[command(name = "kubectl-crr", bin_name = "kubectl crr", version)]
#[command(after_help = "\
Exit codes:
  0    done (without --wait: begun)
  1    a restart failed
  2    the command makes no sense, or the cluster refused it or cannot be reached
  3    --timeout is over; the restart goes on
  130  Ctrl-C while waiting; the restart goes on")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) access: Access,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Cluster and namespace of a command.
#[derive(Debug, clap::Args)]
pub(crate) struct Access {
    /// The namespace; otherwise the context's.
    #[arg(short, long, global = true)]
    pub(crate) namespace: Option<String>,
    /// The context of the kubeconfig; otherwise its current one.
    #[arg(long, global = true)]
    pub(crate) context: Option<String>,
    /// The kubeconfig file; otherwise as kubectl finds it.
    #[arg(long, global = true)]
    pub(crate) kubeconfig: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Restart(RestartArgs),
    List(ListArgs),
    Why(WhyArgs),
    Trace(TraceArgs),
    /// Print a completion script.
    Completion {
        /// For which shell.
        shell: Shell,
    },
}

/// Restart containers in place: the pods, their volumes and their other containers stay.
///
/// A workload's pods, and those of -l, are restarted one after the other, as many at a time as may be not ready, and
/// the next begins when one is ready again. A StatefulSet goes from the highest ordinal to the lowest, others by node
/// and name. The command drives this itself and therefore always waits. Without a terminal, each step is a line that
/// begins with the pod's name. Ctrl-C begins no more pods; restarts that have begun go on.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("whose").required(true).args(["target", "selector"]))]
#[command(after_help = "\
Examples:
  kubectl crr restart web                         # all containers of pod web
  kubectl crr restart web -c app --wait           # one, and wait until it is up again
  kubectl crr restart web --ordered --unready 10s # one after the other, out of service first
  kubectl crr restart deploy/shop                 # a Deployment, pod by pod
  kubectl crr restart sts/db -c postgres --max-unavailable 25%
  kubectl crr restart -l app=shop,tier=front --keep-going

Exit codes of several pods:
  1  a restart failed
  2  not one could be begun
  3  none failed, but a pod is not ready again in time, or had no room in time to begin")]
pub(crate) struct RestartArgs {
    /// The pod, or the workload: TYPE is pod (po), deployment (deploy), statefulset (sts) or daemonset (ds).
    #[arg(value_name = "POD|TYPE/NAME")]
    pub(crate) target: Option<Target>,
    /// All pods with these labels.
    #[arg(short = 'l', long, value_parser = parse_selector)]
    pub(crate) selector: Option<String>,
    /// Of several pods: how many may be not ready at a time, as a number or a share of them. A share is rounded down,
    /// but is at least 1. A pod that is not ready anyway may begin although others are not ready.
    #[arg(long, value_name = "N|P%", default_value = "1")]
    pub(crate) max_unavailable: MaxUnavailable,
    /// Of several pods: begin more after one has failed.
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// A container to restart; may be given several times, in the order wanted. Otherwise all of the pod, init
    /// containers excepted.
    #[arg(short, long = "container", value_name = "NAME")]
    pub(crate) containers: Vec<String>,
    /// Begin with a container only when the one before it is up again.
    #[arg(long)]
    pub(crate) ordered: bool,
    /// Stop each container even when it was restarted since the request was made.
    #[arg(long)]
    pub(crate) force: bool,
    /// Keep the pod not ready for so long before its first container is stopped.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) unready: Option<Duration>,
    /// Time for the preStop hook and the stop together; otherwise the pod's.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) grace: Option<Duration>,
    /// The request ends after that, done or not; at least 3s.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) deadline: Option<Duration>,
    /// How long the new container has to be up before it counts.
    #[arg(long, value_parser = parse_duration)]
    pub(crate) min_started: Option<Duration>,
    /// The request is deleted so long after its end.
    #[arg(long, value_parser = parse_duration, default_value = "30m")]
    pub(crate) ttl: Duration,
    /// What one container's failure does: end the request, or go on.
    #[arg(long, value_enum, ignore_case = true)]
    pub(crate) failure_policy: Option<FailurePolicy>,
    /// Wait for the end, and show how it goes; with several pods this is always so.
    #[arg(long)]
    pub(crate) wait: bool,
    /// With --wait: give up waiting after that. With several pods: the time for each pod to be ready again, from its
    /// own begin, and for room to begin the next; a whole workload takes as long as its pods together.
    #[arg(long, value_parser = parse_duration, default_value = "5m")]
    pub(crate) timeout: Duration,
    /// Only say what would be made: client sends nothing, server has it checked.
    #[arg(long, value_enum)]
    pub(crate) dry_run: Option<DryRun>,
    /// Print the request so, as it is at the end; several as a list.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<Format>,
}

/// List the requests to recreate containers.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl crr list
  kubectl crr list -A -l podwright.dev/restart=3f9a1c")]
pub(crate) struct ListArgs {
    /// Of all namespaces.
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// Only those with these labels.
    #[arg(short = 'l', long)]
    pub(crate) selector: Option<String>,
    /// Print the requests so.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<Format>,
}

/// Explain a request or a pod: how it stands, why, and what happened when.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl crr why web-3f9a1c        # a request
  kubectl crr why pod/web           # a pod: which restarts were asked for, and which were not
  kubectl crr why pod/web -o json")]
pub(crate) struct WhyArgs {
    /// What to explain: crr/NAME, pod/NAME, or NAME: the request of that name, otherwise the pod.
    #[arg(value_name = "CRR|POD")]
    pub(crate) subject: Subject,
    /// Print it so.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<Machine>,
}

/// Show a request's trace: what each service did for it, when, and how long it took.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl crr trace web-3f9a1c
  kubectl crr trace web-3f9a1c --jaeger http://localhost:16686
  kubectl crr trace web-3f9a1c --jaeger-service tracing/jaeger:16686")]
pub(crate) struct TraceArgs {
    /// The request: NAME or crr/NAME.
    #[arg(value_name = "CRR", value_parser = parse_request)]
    pub(crate) request: String,
    /// Where Jaeger's query service is; otherwise --jaeger-service.
    #[arg(long, value_name = "URL", env = "PODWRIGHT_JAEGER", hide_env_values = true, value_parser = parse_url)]
    pub(crate) jaeger: Option<http::Uri>,
    /// Jaeger's query service in the cluster, asked through the API server.
    #[arg(
        long,
        value_name = "NAMESPACE/NAME:PORT",
        env = "PODWRIGHT_JAEGER_SERVICE",
        default_value = "podwright-system/jaeger:query"
    )]
    pub(crate) jaeger_service: JaegerService,
    /// Print Jaeger's answer so.
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<Machine>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum FailurePolicy {
    Fail,
    Ignore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    Client,
    Server,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
    Yaml,
    Name,
}

/// For programs.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Machine {
    Json,
}

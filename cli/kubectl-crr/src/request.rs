//! The request that a command line asks for, and its name.

use std::time::Duration;

use k8s_api::crd::{
    ContainerRecreateRequest as Crr, ContainerRecreateRequestContainer,
    ContainerRecreateRequestSpec, ContainerRecreateRequestStrategy,
};
use model::labels;

use crate::args::RestartArgs;

const LONGEST_NAME: usize = 253;

/// Length of the random end of a name.
const RESTART_ID: usize = 6;

/// A random id, which all requests of one command share.
pub(crate) fn random_restart_id() -> String {
    let mut id = uuid::Uuid::new_v4().simple().to_string();
    id.truncate(RESTART_ID);
    id
}

/// The request for the containers that `args` names, otherwise for `all` of the pod.
pub(crate) fn request(
    args: &RestartArgs,
    namespace: &str,
    pod: &str,
    all: &[String],
    restart_id: &str,
) -> Crr {
    let containers = match args.containers.as_slice() {
        [] => all,
        wanted => wanted,
    };
    let flag = |given: bool| given.then_some(true);
    let strategy = ContainerRecreateRequestStrategy {
        failure_policy: args.failure_policy.map(|policy| format!("{policy:?}")),
        ordered_recreate: flag(args.ordered),
        force_recreate: flag(args.force),
        termination_grace_period_seconds: args.grace.map(long),
        unready_grace_period_seconds: args.unready.map(long),
        min_started_seconds: args.min_started.map(short),
    };
    let container = |name: &String| ContainerRecreateRequestContainer {
        name: name.clone(),
        pre_stop: None,
        ports: Vec::new(),
        status_context: None,
    };
    let spec = ContainerRecreateRequestSpec {
        pod_name: pod.to_owned(),
        containers: containers.iter().map(container).collect(),
        strategy: Some(strategy),
        active_deadline_seconds: args.deadline.map(long),
        ttl_seconds_after_finished: Some(short(args.ttl)),
    };
    let mut request = Crr::new(&crr_name(pod, restart_id), spec);
    request.metadata.namespace = Some(namespace.to_owned());
    let label = (labels::RESTART.to_owned(), restart_id.to_owned());
    request.metadata.labels = Some([label].into());
    request
}

/// The pod's name, truncated if necessary, and the restart's id.
fn crr_name(pod: &str, restart_id: &str) -> String {
    let longest = LONGEST_NAME.saturating_sub(restart_id.len() + 1);
    let pod = pod.get(..longest).unwrap_or(pod); // A pod's name is ASCII.
    format!("{}-{restart_id}", pod.trim_end_matches(['-', '.']))
}

/// Seconds; durations are parsed to fit.
fn short(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)
}

fn long(duration: Duration) -> i64 {
    short(duration).into()
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;
    use crate::args::{Args, Command};

    fn spec_of(line: &str) -> serde_json::Value {
        let words = ["kubectl-crr"].into_iter().chain(line.split(' '));
        let Command::Restart(args) = Args::parse_from(words).command else {
            panic!("{line} is no restart");
        };
        let request = request(&args, "shop", "web", &[], "abc123");
        assert_eq!(request.metadata.name.as_deref(), Some("web-abc123"));
        serde_json::to_value(request.spec).unwrap()
    }

    #[test]
    fn every_flag_is_a_field() {
        let plain = json!({
            "podName": "web", "containers": [{ "name": "a" }], "strategy": {}, "ttlSecondsAfterFinished": 1800,
        });
        assert_eq!(spec_of("restart web -c a"), plain);
        let all = "restart web -c b -c a --ordered --force --unready 3s --grace 10s --deadline 1m \
                   --min-started 5 --ttl 1h --failure-policy ignore";
        let meant = json!({
            "podName": "web", "containers": [{ "name": "b" }, { "name": "a" }],
            "strategy": {
                "failurePolicy": "Ignore", "orderedRecreate": true, "forceRecreate": true,
                "terminationGracePeriodSeconds": 10, "unreadyGracePeriodSeconds": 3, "minStartedSeconds": 5,
            },
            "activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 3600,
        });
        assert_eq!(
            spec_of(&all.split_whitespace().collect::<Vec<_>>().join(" ")),
            meant
        );
    }

    #[test]
    fn names_are_the_pods_and_never_too_long() {
        assert_eq!(crr_name("web-0", "abc123"), "web-0-abc123");
        let name = crr_name(&"a".repeat(253), "abc123");
        assert_eq!((name.len(), name.ends_with("a-abc123")), (253, true));
        let dotted = format!("{}.{}", "a".repeat(245), "b".repeat(7));
        assert_eq!(
            crr_name(&dotted, "abc123"),
            format!("{}-abc123", "a".repeat(245))
        );
    }
}

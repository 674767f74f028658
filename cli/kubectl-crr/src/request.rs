//! The request that a command line means.

use std::time::Duration;

use k8s_api::crd::{
    ContainerRecreateRequest, ContainerRecreateRequestContainer, ContainerRecreateRequestSpec,
    ContainerRecreateRequestStrategy,
};
use k8s_openapi::api::core::v1::Pod;
use model::labels;

use crate::{
    args::{FailurePolicy, RestartArgs},
    naming::crr_name,
};

/// The request for a pod's containers.
pub(crate) fn request(
    args: &RestartArgs,
    pod: &str,
    containers: &[String],
    word: &str,
) -> ContainerRecreateRequest {
    let flag = |given: bool| given.then_some(true);
    let policy = args.failure_policy.map(|policy| match policy {
        FailurePolicy::Fail => "Fail".to_owned(),
        FailurePolicy::Ignore => "Ignore".to_owned(),
    });
    let strategy = ContainerRecreateRequestStrategy {
        failure_policy: policy,
        ordered_recreate: flag(args.ordered),
        force_recreate: flag(args.force),
        termination_grace_period_seconds: args.grace.map(long),
        unready_grace_period_seconds: args.unready.map(long),
        min_started_seconds: args.min_started.map(short),
    };
    let spec = ContainerRecreateRequestSpec {
        pod_name: pod.to_owned(),
        containers: containers.iter().map(|name| container(name)).collect(),
        strategy: Some(strategy),
        active_deadline_seconds: args.deadline.map(long),
        ttl_seconds_after_finished: Some(short(args.ttl)),
    };
    let mut request = ContainerRecreateRequest::new(&crr_name(pod, word), spec);
    let label = (labels::RESTART.to_owned(), word.to_owned());
    request.metadata.labels = Some([label].into());
    request
}

fn container(name: &str) -> ContainerRecreateRequestContainer {
    ContainerRecreateRequestContainer {
        name: name.to_owned(),
        pre_stop: None,
        ports: Vec::new(),
        status_context: None,
    }
}

/// Every container of a pod that can be recreated: not the init containers that have to end.
pub(crate) fn containers_of(pod: &Pod) -> Vec<String> {
    let Some(spec) = &pod.spec else {
        return Vec::new();
    };
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars =
        sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let all = sidecars.chain(&spec.containers);
    all.map(|container| container.name.clone()).collect()
}

/// Durations are parsed to fit.
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
        let request = request(&args, "web", &args.containers, "abc123");
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
    fn all_containers_are_those_that_live_on() {
        let pod: Pod = serde_json::from_value(json!({ "spec": {
            "initContainers": [{ "name": "setup" }, { "name": "proxy", "restartPolicy": "Always" }],
            "containers": [{ "name": "app" }, { "name": "log" }],
        }}))
        .unwrap();
        assert_eq!(containers_of(&pod), ["proxy", "app", "log"]);
    }
}

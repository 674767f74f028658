//! The block that a terminal shows while restarts go on, as lines that fit.

use std::time::Duration;

use k8s_api::crd::ContainerRecreateRequest as Crr;

use crate::{
    outcome::{because, message, phase, states},
    restarts::{Entry, Restarts, Stage},
};

/// A line about the group, and one for each pod in flight.
pub(crate) fn of_group(restarts: &Restarts, now: Duration, size: (usize, usize)) -> Vec<String> {
    let (width, height) = size;
    let entries = restarts.entries.iter();
    let mut flights: Vec<_> = entries.filter_map(|entry| flight(entry, now)).collect();
    let most = height.saturating_sub(3).max(1); // The head, the rest, and the line of the cursor.
    let rest = flights.len().saturating_sub(most);
    flights.truncate(most);
    let widest = flights.iter().map(|(pod, ..)| pod.chars().count()).max();
    let widest = widest.unwrap_or_default();
    let mut lines = vec![restarts.tally().sentence()];
    if restarts.no_room_since.is_some() {
        let unready = restarts.unready().join(", ");
        lines.push(format!("  waiting for room; not ready: {unready}"));
    }
    for (pod, seconds, state) in flights {
        lines.push(format!("  {pod:<widest$}  {seconds:>4}s  {state}"));
    }
    if rest > 0 {
        lines.push(format!("  and {rest} more"));
    }
    lines.iter().map(|line| cut(line, width)).collect()
}

pub(crate) fn of_request(request: &Crr, since: Duration, width: usize) -> Vec<String> {
    let pod = &request.spec.pod_name;
    let line = format!("{pod}  {}s  {}", since.as_secs(), state(request));
    vec![cut(&line, width)]
}

/// Name, seconds and state of a pod in flight.
fn flight(entry: &Entry, now: Duration) -> Option<(&str, u64, String)> {
    let (since, state) = match (&entry.stage, &entry.request) {
        (Stage::Begun { since }, None) => (since, "asking for it".to_owned()),
        (Stage::Begun { since }, Some(request)) => (since, state(request)),
        (Stage::Settling { since }, _) => (since, "restarted; not ready yet".to_owned()),
        _ => return None,
    };
    let seconds = now.saturating_sub(*since).as_secs();
    Some((&entry.member.name, seconds, state))
}

/// Each container's phase, or the request's before there are any.
fn state(request: &Crr) -> String {
    let states = states(request).iter();
    let states = states.map(|it| format!("{} {}", it.name, it.phase));
    let state = match states.collect::<Vec<_>>() {
        states if states.is_empty() => phase(request).to_owned(),
        states => states.join(", "),
    };
    format!("{state}{}", because(message(request)))
}

/// The part of a line that fits: a terminal would wrap the rest.
fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let kept = line.chars().take(width.saturating_sub(1));
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        cluster::News,
        members::{Group, Member},
        restarts::Limits,
        rollout::Plan,
    };

    fn crr(pod: &str, status: &Value) -> Crr {
        serde_json::from_value(json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
            "metadata": { "name": format!("{pod}-w") },
            "spec": { "podName": pod, "containers": [{ "name": "app" }] },
            "status": status,
        }))
        .unwrap()
    }

    /// That many pods, all of them ready and none begun.
    fn restarts(count: usize) -> Restarts {
        let name = |number| format!("web-{number}");
        let member = |number| Member {
            name: name(number),
            uid: name(number),
            containers: Vec::new(),
        };
        let group = Group {
            members: (0..count).map(member).collect(),
            ..Group::default()
        };
        let limits = Limits {
            max_unavailable: count,
            keeps_going: false,
            patience: Duration::from_secs(60),
        };
        let pod = |number| {
            let condition = json!({ "type": "Ready", "status": "True" });
            let metadata = json!({ "name": name(number), "uid": name(number) });
            let pod = json!({ "metadata": metadata, "status": { "conditions": [condition] } });
            serde_json::from_value(pod).unwrap()
        };
        let mut restarts = Restarts::new(&group, limits);
        restarts.on_pods(News::All((0..count).map(pod).collect()));
        restarts.on_requests(News::All(Vec::new()));
        restarts
    }

    #[test]
    fn a_group_shows_those_in_flight() {
        let mut restarts = restarts(12);
        for (pod, since) in [("web-0", 1), ("web-1", 2), ("web-11", 3), ("web-2", 4)] {
            assert!(restarts.begin(pod, Duration::from_secs(since)).is_some());
        }
        restarts.made(crr("web-1", &Value::Null));
        let states = json!([{ "name": "app", "phase": "Recreating" }, { "name": "log", "phase": "Pending" }]);
        let status = json!({ "phase": "Recreating", "containerRecreateStates": states });
        restarts.made(crr("web-11", &status));
        let queued = json!({ "phase": "Pending", "message": "its turn comes" });
        restarts.made(crr("web-2", &queued));
        let now = Duration::from_secs(12);
        let told = [
            "0 of 12 pods restarted, 4 in flight, 8 not begun",
            "  web-0     11s  asking for it",
            "  web-1     10s  New",
            "  web-2      8s  Pending (its turn comes)",
            "  web-11     9s  app Recreating, log Pending",
        ];
        assert_eq!(of_group(&restarts, now, (80, 24)), told);
        let few = of_group(&restarts, now, (20, 5));
        let told = [
            "0 of 12 pods restar…",
            "  web-0    11s  ask…",
            "  web-1    10s  New",
            "  and 2 more",
        ];
        assert_eq!(few, told);
    }

    #[test]
    fn a_group_without_room_says_for_whom_it_waits() {
        let mut restarts = restarts(1);
        let condition = json!({ "type": "Ready", "status": "False" });
        let metadata = json!({ "name": "web-x", "uid": "x" });
        let pod = json!({ "metadata": metadata, "status": { "conditions": [condition] } });
        restarts.on_pods(News::Is(serde_json::from_value(pod).unwrap()));
        assert_eq!(restarts.plan(Duration::ZERO), Plan::NoRoom);
        let told = [
            "0 of 1 pod restarted, 1 not begun",
            "  waiting for room; not ready: web-x",
        ];
        assert_eq!(of_group(&restarts, Duration::ZERO, (80, 24)), told);
    }

    #[test]
    fn a_request_is_one_line() {
        let states = json!([{ "name": "app", "phase": "Recreating" }]);
        let status = json!({ "phase": "Recreating", "containerRecreateStates": states });
        let line = of_request(&crr("web", &status), Duration::from_secs(7), 80);
        assert_eq!(line, ["web  7s  app Recreating"]);
    }
}

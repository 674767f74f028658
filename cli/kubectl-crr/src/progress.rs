//! The block that a terminal shows while restarts go on: pure, from what is known to lines that fit.

use std::time::Duration;

use k8s_api::crd::ContainerRecreateRequest;

use crate::{
    outcome::phase,
    restarts::{Entry, Restarts, Stage},
};

/// The group in one line, and one for each pod in flight.
pub(crate) fn of_group(
    restarts: &Restarts,
    now: Duration,
    (width, height): (usize, usize),
) -> Vec<String> {
    let flights = restarts
        .entries
        .iter()
        .filter_map(|entry| flight(entry, now));
    let mut flights: Vec<_> = flights.collect();
    let room = height.saturating_sub(3).max(1); // The head, the rest, and the line of the cursor.
    let rest = flights.len().saturating_sub(room);
    flights.truncate(room);
    let widest = flights.iter().map(|(pod, ..)| pod.chars().count()).max();
    let widest = widest.unwrap_or_default();
    let mut lines = vec![restarts.tally().sentence()];
    if flights.is_empty() {
        let unready = restarts.unready();
        if !unready.is_empty() {
            lines.push(format!(
                "  waiting for room; not ready: {}",
                unready.join(", ")
            ));
        }
    }
    for (pod, since, state) in flights {
        lines.push(format!(
            "  {pod:<widest$}  {:>4}s  {state}",
            since.as_secs()
        ));
    }
    if rest > 0 {
        lines.push(format!("  and {rest} more"));
    }
    lines.iter().map(|line| cut(line, width)).collect()
}

/// One request on its own.
pub(crate) fn of_request(
    request: &ContainerRecreateRequest,
    since: Duration,
    width: usize,
) -> Vec<String> {
    let pod = &request.spec.pod_name;
    let line = format!("{pod}  {}s  {}", since.as_secs(), state(request));
    vec![cut(&line, width)]
}

fn flight(entry: &Entry, now: Duration) -> Option<(&str, Duration, String)> {
    let (since, state) = match (&entry.stage, &entry.request) {
        (Stage::Begun { since }, None) => (since, "asking for it".to_owned()),
        (Stage::Begun { since }, Some(request)) => (since, state(request)),
        (Stage::Settling { since }, _) => (since, "restarted; not ready yet".to_owned()),
        _ => return None,
    };
    let name = entry.member.name.as_str();
    Some((name, now.saturating_sub(*since), state))
}

/// Each container's phase, or the request's before there are any.
fn state(request: &ContainerRecreateRequest) -> String {
    let states = request.status.iter();
    let states = states.flat_map(|status| &status.container_recreate_states);
    let states: Vec<_> = states
        .map(|state| format!("{} {}", state.name, state.phase))
        .collect();
    let message = request.status.as_ref().and_then(|it| it.message.as_ref());
    let because = message.filter(|it| !it.is_empty());
    let because = because.map(|it| format!(" ({it})")).unwrap_or_default();
    if states.is_empty() {
        return format!("{}{because}", phase(request));
    }
    format!("{}{because}", states.join(", "))
}

/// What fits into one line: a terminal would make two of more.
fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let kept = line.chars().take(width.saturating_sub(1));
    kept.chain(['…']).collect()
}

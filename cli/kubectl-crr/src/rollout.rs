//! Which pods of a group are next: a planner without memory or IO.

/// A pod of the group; pods are listed in the order of their restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) is_ready: bool,
    pub(crate) progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// No request was made for it yet.
    Waiting,
    /// Its request has not ended, or it is not ready again.
    InFlight,
    /// In flight, but no longer waited for.
    Overdue,
    Restarted,
    Failed,
    /// Not restarted: it only counts while it is not ready.
    Bystander,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Make a request for these pods, in this order.
    Begin(Vec<String>),
    /// Wait for those in flight.
    Wait,
    /// None is in flight, and none may begin: too many pods are not ready.
    NoRoom,
    /// Nothing is left to do; these pods, in order, were never begun.
    End { left: Vec<String> },
}

/// The next step for `pods`, of which at most `max_unavailable` may be not ready. After a failure no more pods begin,
/// unless `keeps_going`.
///
/// A pod in flight counts as not ready whatever its status: it may go at any moment. A waiting pod that is not ready
/// reduces nothing when it is restarted, and the restart may be what it needs, so it only needs fewer in flight.
pub(crate) fn plan(pods: &[Pod], max_unavailable: usize, keeps_going: bool) -> Plan {
    let is_any = |wanted: &[Progress]| pods.iter().any(|pod| wanted.contains(&pod.progress));
    let has_failed = is_any(&[Progress::Failed, Progress::Overdue]);
    let is_stopped = has_failed && !keeps_going;
    let waiting = pods.iter().filter(|pod| pod.progress == Progress::Waiting);
    let next = if is_stopped {
        Vec::new()
    } else {
        next_pods(pods, max_unavailable)
    };
    if !next.is_empty() {
        Plan::Begin(next)
    } else if is_any(&[Progress::InFlight]) {
        Plan::Wait
    } else if is_any(&[Progress::Waiting]) && !is_stopped {
        Plan::NoRoom
    } else {
        let left = waiting.map(|pod| pod.name.clone()).collect();
        Plan::End { left }
    }
}

fn next_pods(pods: &[Pod], max_unavailable: usize) -> Vec<String> {
    let is_going = |pod: &&Pod| matches!(pod.progress, Progress::InFlight | Progress::Overdue);
    let is_unavailable = |pod: &&Pod| !pod.is_ready || is_going(pod);
    let mut in_flight = pods.iter().filter(is_going).count();
    let mut unavailable = pods.iter().filter(is_unavailable).count();
    let mut next = Vec::new();
    for pod in pods.iter().filter(|pod| pod.progress == Progress::Waiting) {
        if in_flight < max_unavailable && (!pod.is_ready || unavailable < max_unavailable) {
            in_flight += 1;
            unavailable += usize::from(pod.is_ready);
            next.push(pod.name.clone());
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter for each pod, named a, b, c …: w waiting, i in flight, o overdue, r restarted, f failed,
    /// b bystander; a capital is not ready.
    fn pods(letters: &str) -> Vec<Pod> {
        let pods = letters.chars().zip('a'..).map(|(letter, name)| Pod {
            name: name.to_string(),
            is_ready: letter.is_lowercase(),
            progress: match letter.to_ascii_lowercase() {
                'w' => Progress::Waiting,
                'i' => Progress::InFlight,
                'o' => Progress::Overdue,
                'r' => Progress::Restarted,
                'f' => Progress::Failed,
                'b' => Progress::Bystander,
                other => panic!("{other} stands for nothing"),
            },
        });
        pods.collect()
    }

    fn begin(names: &str) -> Plan {
        Plan::Begin(names.chars().map(String::from).collect())
    }

    fn end(names: &str) -> Plan {
        let left = names.chars().map(String::from).collect();
        Plan::End { left }
    }

    #[test]
    fn never_takes_more_than_allowed() {
        for (letters, max_unavailable, expected) in [
            ("www", 1, begin("a")),
            ("www", 2, begin("ab")),
            ("www", 9, begin("abc")),
            ("iww", 1, Plan::Wait),
            ("Iww", 1, Plan::Wait),
            ("iww", 2, begin("b")),
            ("rww", 1, begin("b")),
            ("Rww", 1, Plan::NoRoom),
            ("Rww", 2, begin("b")),
            ("bww", 1, begin("b")),
            ("Bww", 1, Plan::NoRoom),
            ("BBw", 2, Plan::NoRoom),
            ("iBw", 2, Plan::Wait),
            ("rri", 1, Plan::Wait),
            ("rrr", 1, end("")),
            ("rrR", 1, end("")),
            ("rrB", 1, end("")),
            ("", 1, end("")),
        ] {
            let plan = plan(&pods(letters), max_unavailable, false);
            assert_eq!(plan, expected, "{letters} {max_unavailable}");
        }
    }

    #[test]
    fn a_pod_that_is_not_ready_needs_only_a_free_place() {
        for (letters, max_unavailable, expected) in [
            ("wWw", 1, begin("b")),
            ("wWw", 2, begin("ab")),
            ("WWw", 1, begin("a")),
            ("WWw", 2, begin("ab")),
            ("WWw", 3, begin("abc")),
            ("iWw", 1, Plan::Wait),
            ("BWw", 1, begin("b")),
        ] {
            let plan = plan(&pods(letters), max_unavailable, false);
            assert_eq!(plan, expected, "{letters} {max_unavailable}");
        }
    }

    #[test]
    fn stops_at_the_first_failure_unless_told_otherwise() {
        for (letters, max_unavailable, keeps_going, expected) in [
            ("Fww", 1, false, end("bc")),
            ("fww", 1, false, end("bc")),
            ("oww", 1, false, end("bc")),
            ("ifw", 2, false, Plan::Wait),
            ("fww", 1, true, begin("b")),
            ("Fww", 1, true, Plan::NoRoom),
            ("Fww", 2, true, begin("b")),
            ("oww", 1, true, Plan::NoRoom),
            ("oww", 2, true, begin("b")),
            ("frr", 1, true, end("")),
        ] {
            let plan = plan(&pods(letters), max_unavailable, keeps_going);
            assert_eq!(
                plan, expected,
                "{letters} {max_unavailable} {keeps_going:?}"
            );
        }
    }
}

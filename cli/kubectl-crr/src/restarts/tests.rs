//! The machine, one news at a time.

use serde_json::{Value, json};

use super::*;

/// A group on paper: what the API server would show, one news at a time.
struct Paper {
    restarts: Restarts,
    now: u64,
}

fn pod(name: &str, instance: &str, is_ready: bool) -> Pod {
    let status = if is_ready { "True" } else { "False" };
    let pod = json!({
        "metadata": { "name": name, "uid": format!("uid-{name}") },
        "spec": { "containers": [{ "name": "app" }] },
        "status": {
            "conditions": [{ "type": "Ready", "status": status }],
            "containerStatuses": [{
                "name": "app", "containerID": instance, "ready": is_ready, "restartCount": 0, "image": "", "imageID": "",
            }],
        },
    });
    serde_json::from_value(pod).unwrap()
}

fn crr(pod: &str, status: &Value) -> Crr {
    serde_json::from_value(json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
        "metadata": { "name": format!("{pod}-w") },
        "spec": { "podName": pod, "containers": [{ "name": "app" }] },
        "status": status,
    }))
    .unwrap()
}

fn ended(pod: &str, is_well: &str) -> Crr {
    let condition = json!({
        "type": "Succeeded", "status": is_well, "reason": "R", "message": "because",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    crr(
        pod,
        &json!({ "phase": "Completed", "conditions": [condition] }),
    )
}

impl Paper {
    /// Pods of these names, all of them ready.
    fn new(names: &[&str], keeps_going: bool) -> Self {
        let member = |name: &&str| Member {
            name: (*name).to_owned(),
            uid: format!("uid-{name}"),
            containers: vec!["app".to_owned()],
        };
        let group = Group {
            members: names.iter().map(member).collect(),
            ..Group::default()
        };
        let limits = Limits {
            max_unavailable: 1,
            keeps_going,
            patience: Duration::from_secs(60),
        };
        let mut restarts = Restarts::new(&group, limits);
        let pods = names.iter().map(|name| pod(name, "old", true)).collect();
        restarts.on_pods(News::All(pods));
        restarts.on_requests(News::All(Vec::new()));
        Self { restarts, now: 0 }
    }

    fn plan(&mut self) -> Plan {
        self.restarts.plan(Duration::from_secs(self.now))
    }

    /// The next pod begins, and its request is made.
    fn begins(&mut self, name: &str) {
        assert_eq!(self.plan(), Plan::Begin(vec![name.to_owned()]));
        let now = Duration::from_secs(self.now);
        assert!(self.restarts.begin(name, now).is_some());
        self.restarts.made(crr(name, &Value::Null));
        assert_eq!(self.plan(), Plan::Wait);
    }

    fn sees(&mut self, pod: Pod) {
        self.restarts.on_pods(News::Is(pod));
    }

    fn hears(&mut self, request: Crr) {
        self.restarts.on_requests(News::Is(request));
    }

    fn ends(&mut self, sentence: &str) {
        assert!(
            matches!(self.plan(), Plan::End { .. }),
            "{:?}",
            self.restarts
        );
        assert_eq!(self.restarts.tally().sentence(), sentence);
    }
}

#[test]
fn the_next_begins_when_the_one_before_is_ready_again() {
    let mut paper = Paper::new(&["a", "b"], false);
    paper.begins("a");
    paper.hears(ended("a", "True"));
    assert_eq!(paper.plan(), Plan::Wait, "what is seen of the pod is older");
    paper.sees(pod("a", "new", false));
    assert_eq!(paper.plan(), Plan::Wait);
    paper.now = 4;
    paper.sees(pod("a", "new", true));
    paper.begins("b");
    paper.sees(pod("b", "new", true));
    paper.hears(ended("b", "True"));
    paper.ends("2 of 2 pods restarted");
    let said = [
        Line::Step("a: begun (a-w)".to_owned()),
        Line::Step("a: succeeded (because)".to_owned()),
        Line::Good("a: ready again after 4s".to_owned()),
        Line::Step("b: begun (b-w)".to_owned()),
        Line::Step("b: succeeded (because)".to_owned()),
        Line::Good("b: ready again after 0s".to_owned()),
    ];
    assert_eq!(paper.restarts.take_lines(), said);
}

#[test]
fn nothing_begins_before_all_was_seen() {
    let group = Group::default();
    let limits = Limits {
        max_unavailable: 1,
        keeps_going: false,
        patience: Duration::ZERO,
    };
    let mut restarts = Restarts::new(&group, limits);
    assert_eq!(restarts.plan(Duration::ZERO), Plan::Wait);
    restarts.on_pods(News::Broken("no answer".to_owned()));
    assert!(restarts.pods.is_none(), "no pod counts as gone");
    restarts.on_pods(News::All(Vec::new()));
    assert_eq!(restarts.plan(Duration::ZERO), Plan::Wait);
    restarts.on_requests(News::All(Vec::new()));
    assert!(matches!(restarts.plan(Duration::ZERO), Plan::End { .. }));
}

#[test]
fn a_failure_stops_or_does_not() {
    let mut paper = Paper::new(&["a", "b"], false);
    paper.begins("a");
    paper.hears(ended("a", "False"));
    paper.ends("0 of 2 pods restarted, 1 failed, 1 not begun");
    let said = paper.restarts.take_lines();
    assert_eq!(
        said.last(),
        Some(&Line::Bad("a: FAILED (because)".to_owned()))
    );

    let mut paper = Paper::new(&["a", "b"], true);
    paper.begins("a");
    paper.hears(ended("a", "False"));
    paper.begins("b");
}

#[test]
fn a_refusal_is_a_failure() {
    let mut paper = Paper::new(&["a", "b"], false);
    assert!(paper.restarts.begin("a", Duration::ZERO).is_some());
    paper.restarts.refused("a", "no");
    paper.ends("0 of 2 pods restarted, 1 failed, 1 not begun");
}

#[test]
fn a_request_that_is_deleted_is_a_failure() {
    let mut paper = Paper::new(&["a"], false);
    paper.begins("a");
    paper.restarts.on_requests(News::All(Vec::new()));
    assert_eq!(
        paper.plan(),
        Plan::Wait,
        "the list may be older than the request"
    );
    paper.hears(crr("a", &Value::Null));
    paper
        .restarts
        .on_requests(News::All(vec![crr("a", &Value::Null)]));
    assert_eq!(paper.plan(), Plan::Wait);
    paper.restarts.on_requests(News::All(Vec::new()));
    paper.ends("0 of 1 pod restarted, 1 failed");
}

#[test]
fn a_pod_that_takes_too_long_is_given_up_and_keeps_its_place() {
    let mut paper = Paper::new(&["a", "b"], true);
    paper.begins("a");
    assert_eq!(
        paper.restarts.next_deadline(),
        Some(Duration::from_secs(60))
    );
    paper.now = 60;
    assert_eq!(paper.plan(), Plan::NoRoom, "its request goes on");
    paper.hears(ended("a", "True"));
    assert_eq!(paper.plan(), Plan::Begin(vec!["b".to_owned()]));
    let mut paper = Paper::new(&["a", "b"], false);
    paper.begins("a");
    paper.now = 60;
    paper.ends("0 of 2 pods restarted, 1 not ready again in time, 1 not begun");
}

#[test]
fn room_is_waited_for_so_long() {
    let mut paper = Paper::new(&["a", "b"], true);
    paper.sees(pod("c", "other", false));
    assert_eq!(paper.plan(), Plan::NoRoom);
    assert_eq!(paper.restarts.unready(), ["c"]);
    paper.now = 59;
    assert_eq!(paper.plan(), Plan::NoRoom);
    paper.sees(pod("c", "other", true));
    assert_eq!(paper.plan(), Plan::Begin(vec!["a".to_owned()]));
    paper.sees(pod("c", "other", false));
    assert_eq!(paper.plan(), Plan::NoRoom);
    assert_eq!(
        paper.restarts.next_deadline(),
        Some(Duration::from_secs(119))
    );
    paper.now = 119;
    paper.ends("0 of 2 pods restarted, 2 not begun");
}

#[test]
fn a_pod_that_goes_away_is_passed_over() {
    let mut paper = Paper::new(&["a", "b", "c"], false);
    let mut leaving = pod("a", "old", true);
    leaving.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    paper.sees(leaving);
    paper.restarts.on_pods(News::Gone(pod("b", "old", true)));
    paper.begins("c");
    paper.hears(ended("c", "True"));
    paper.restarts.on_pods(News::Gone(pod("c", "old", true)));
    paper.ends("0 of 3 pods restarted, 1 failed, 2 gone before");
}

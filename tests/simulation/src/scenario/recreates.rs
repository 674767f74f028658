//! Scenarios of ContainerRecreateRequests.

use std::time::Duration;

use model::{
    crr::{Crr, FailurePolicy},
    order::PreStop,
    pod::RestartPolicy,
};
use rand::{RngExt, rngs::StdRng};
use testkit::{CrrBuilder, crr};

use super::{ContainerPlan, Deed, PodPlan, Setup};
use crate::world::FOREIGN_FINALIZER;

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn pod(name: &str, node: usize, containers: &[&str]) -> PodPlan {
    let containers = containers.iter().map(|name| ContainerPlan::new(name));
    PodPlan::new(name, node, containers.collect())
}

/// A request for containers of a pod: some have a hook, and the grace is 12 s.
pub(super) fn request(rng: &mut StdRng, name: &str, pod: &str, containers: &[&str]) -> CrrBuilder {
    let mut request = crr(containers)
        .named(name, "set at creation")
        .with(|crr| crr.pod.name = pod.into())
        .strategy(|strategy| strategy.termination_grace = Some(seconds(12)));
    for position in 0..containers.len() {
        if rng.random_bool(0.6) {
            request = request.with(|crr| hook(crr, position));
        }
    }
    request
}

fn hook(crr: &mut Crr, position: usize) {
    crr.containers[position].pre_stop = Some(PreStop::Exec {
        command: vec!["sync".to_owned()],
    });
}

pub(super) fn simple(rng: &mut StdRng) -> Setup {
    let pods = vec![pod("web", 0, &["app", "proxy"]), pod("db", 1, &["db"])];
    let both = request(rng, "both", "web", &["app", "proxy"]).strategy(|strategy| {
        strategy.min_started = seconds(3);
    });
    let one = request(rng, "one", "db", &["db"]);
    Setup::new(pods)
        .request(3_000, both.build())
        .request(4_000, one.build())
}

pub(super) fn queue(rng: &mut StdRng) -> Setup {
    let first = request(rng, "first", "web", &["app", "proxy"]);
    let second = request(rng, "second", "web", &["app"]);
    let third = request(rng, "third", "web", &["proxy", "log"]);
    Setup::new(vec![pod("web", 0, &["app", "proxy", "log"])])
        .request(3_000, first.build())
        .request(3_000 + rng.random_range(0..400), second.build())
        .request(3_000 + rng.random_range(0..20_000), third.build())
}

pub(super) fn ordered(rng: &mut StdRng) -> Setup {
    let containers = ["app", "proxy", "log"];
    let request = request(rng, "ordered", "web", &containers).ordered();
    let request = request.strategy(|strategy| strategy.failure_policy = FailurePolicy::Ignore);
    Setup::new(vec![pod("web", 0, &containers)])
        .request(3_000, request.build())
        .at(
            3_000 + rng.random_range(0..20_000),
            Deed::EndContainer("web", "proxy"),
        )
}

pub(super) fn forced(rng: &mut StdRng) -> Setup {
    let mut web = pod("web", 0, &["app", "proxy"]);
    web.containers[0].ready_after = seconds(5);
    let ended_at = 2_500 + rng.random_range(0..700);
    let request = request(rng, "forced", "web", &["app", "proxy"]).forced();
    let setup = Setup::new(vec![web])
        .at(ended_at, Deed::EndContainer("web", "app"))
        .request(3_000, request.build());
    if rng.random_bool(0.3) {
        let cut_off_at = 3_000 + rng.random_range(0..500);
        let length = seconds(rng.random_range(5..30));
        return setup.at(cut_off_at, Deed::CutOff(0, length));
    }
    setup
}

pub(super) fn drain(rng: &mut StdRng) -> Setup {
    let mut web = pod("web", 0, &["app", "proxy"]);
    web.has_gate = true;
    let first = request(rng, "first", "web", &["app"]).drained(seconds(8));
    let second = request(rng, "second", "web", &["proxy"]).drained(seconds(2));
    let mut setup = Setup::new(vec![web])
        .request(3_000, first.build())
        .request(5_000, second.build());
    let mut at = 2_900;
    while at < 30_000 {
        at += rng.random_range(20..3_000);
        setup = setup.at(at, Deed::HoldGate("web"));
        at += rng.random_range(20..3_000);
        setup = setup.at(at, Deed::ReleaseGate("web"));
    }
    if rng.random_bool(0.3) {
        return setup.at(
            3_500 + rng.random_range(0..15_000),
            Deed::DeleteRequest("first"),
        );
    }
    setup
}

pub(super) fn deadline(rng: &mut StdRng) -> Setup {
    let deadline = seconds(rng.random_range(2..25));
    let first = request(rng, "first", "web", &["app", "proxy"]).deadline(deadline);
    let second = request(rng, "second", "web", &["app"]).deadline(seconds(40));
    Setup::new(vec![pod("web", 0, &["app", "proxy"])])
        .request(3_000, first.ordered().build())
        .request(3_500, second.build())
}

pub(super) fn time_to_live(rng: &mut StdRng) -> Setup {
    let ttl = seconds(rng.random_range(0..20));
    let first = request(rng, "again", "web", &["app"]).ttl(ttl);
    let second = request(rng, "other", "web", &["proxy"]).ttl(seconds(90));
    let mut setup = Setup::new(vec![pod("web", 0, &["app", "proxy"])])
        .request(3_000, first.build())
        .request(4_000, second.build());
    // The same name again and again, also while the one before is about to be deleted.
    let mut at = 3_000;
    for _ in 0..5 {
        at += rng.random_range(500..12_000);
        let ttl = seconds(rng.random_range(0..4));
        let again = request(rng, "again", "web", &["app"]).ttl(ttl);
        setup = setup
            .at(at, Deed::DeleteRequest("again"))
            .request(at + rng.random_range(0..300), again.build());
    }
    setup
}

pub(super) fn deletion(rng: &mut StdRng) -> Setup {
    let first = request(rng, "gone", "web", &["app", "proxy"]);
    let again = request(rng, "gone", "web", &["proxy"]);
    let other = request(rng, "kept", "web", &["app"]);
    let other = other.with(|crr| crr.finalizers.push(FOREIGN_FINALIZER.to_owned()));
    let deleted_at = 3_000 + rng.random_range(0..8_000);
    Setup::new(vec![pod("web", 0, &["app", "proxy"])])
        .request(3_000, first.ordered().build())
        .at(deleted_at, Deed::DeleteRequest("gone"))
        .request(deleted_at + 10, again.build())
        .request(deleted_at + 20, other.build())
        .at(
            deleted_at + rng.random_range(0..20_000),
            Deed::DeleteRequest("kept"),
        )
        .at(60_000, Deed::ReleaseRequests)
}

pub(super) fn back_off(rng: &mut StdRng) -> Setup {
    let mut web = pod("web", 0, &["app", "proxy"]);
    web.containers[0].restarts = 3;
    web.containers[1].restarts = rng.random_range(1..5);
    web.containers[1].ends = vec![(seconds(2), 1)];
    web.containers[1].ready_after = seconds(15);
    let first = request(rng, "first", "web", &["app"]);
    let forced = request(rng, "forced", "web", &["proxy"]).forced();
    let respects = rng.random_bool(0.2);
    let respectful = request(rng, "respectful", "web", &["app"]);
    let respectful = respectful.with(|crr| crr.respects_back_off = respects);
    Setup::new(vec![web])
        .request(4_000, first.build())
        .request(5_000, forced.build())
        .request(40_000, respectful.build())
}

pub(super) fn pod_replaced(rng: &mut StdRng) -> Setup {
    let first = request(rng, "first", "web", &["app", "proxy"]).drained(seconds(2));
    let second = request(rng, "second", "web", &["app"]);
    let third = request(rng, "third", "db", &["db"]);
    let mut web = pod("web", 0, &["app", "proxy"]);
    web.has_gate = true;
    let other_node = rng.random_range(0..2);
    Setup::new(vec![web, pod("db", 1, &["db"])])
        .request(3_000, first.ordered().build())
        .request(3_000, third.build())
        .at(
            3_000 + rng.random_range(0..15_000),
            Deed::ReplacePod("web", other_node),
        )
        .at(3_000 + rng.random_range(0..6_000), Deed::DeletePod("db"))
        .request(25_000, second.build())
}

pub(super) fn few_slots(rng: &mut StdRng) -> Setup {
    let names = ["a", "b", "c", "d"];
    let pods = names.iter().map(|name| pod(name, 0, &["app"]));
    let mut setup = Setup::new(pods.collect());
    setup.slots = 1;
    for name in names {
        let mut request = request(rng, name, name, &["app"]);
        request = request.with(|crr| hook(crr, 0)).strategy(|strategy| {
            strategy.termination_grace = Some(seconds(12));
        });
        setup = setup.request(3_000 + rng.random_range(0..2_000), request.build());
    }
    setup
}

pub(super) fn deleted_in_queue(rng: &mut StdRng) -> Setup {
    let setup = few_slots(rng);
    setup.at(6_000, Deed::DeleteRequest("d"))
}

pub(super) fn ends_for_good(rng: &mut StdRng) -> Setup {
    let mut job = pod("job", 0, &["main", "side"]);
    job.restart_policy = if rng.random_bool(0.5) {
        RestartPolicy::Never
    } else {
        RestartPolicy::OnFailure
    };
    for container in &mut job.containers {
        container.restart_policy = job.restart_policy;
    }
    job.containers[1].ends = vec![(seconds(6), 0)];
    let request = request(rng, "job", "job", &["main", "side"]);
    let request = request.strategy(|strategy| strategy.failure_policy = FailurePolicy::Ignore);
    Setup::new(vec![job]).request(3_000, request.build())
}

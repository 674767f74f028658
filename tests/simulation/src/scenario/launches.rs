//! Scenarios of ordered launches.

use std::time::Duration;

use model::{launch::Priority, pod::RestartPolicy};
use rand::{RngExt, rngs::StdRng};

use super::{ContainerPlan, Deed, Leftover, PodPlan, Setup, recreates::request};

/// Containers by name, level, and whether only pod status shows that they are up.
fn pod(name: &str, node: usize, containers: &[(&str, i32, bool)]) -> PodPlan {
    let containers = containers.iter().map(|(name, level, needs_status)| {
        let mut plan = ContainerPlan::new(name);
        plan.priority = Some(Priority::new(*level));
        plan.needs_status = *needs_status;
        plan.ready_after = Duration::from_millis(if *needs_status { 3_000 } else { 0 });
        plan
    });
    PodPlan::new(name, node, containers.collect())
}

pub(super) fn launch(rng: &mut StdRng) -> Setup {
    let mut web = pod(
        "web",
        0,
        &[("proxy", 2, false), ("init", 1, false), ("app", 0, true)],
    );
    // A level that ends for good counts as up.
    web.containers[1].restart_policy = RestartPolicy::OnFailure;
    web.containers[1].ends = vec![(Duration::from_secs(1), 1), (Duration::from_secs(1), 0)];
    let db = pod("db", 1, &[("db", 10, true), ("backup", -1, false)]);
    let setup = Setup::new(vec![web, db]);
    if rng.random_bool(0.4) {
        let at = rng.random_range(500..8_000);
        return setup.at(at, Deed::ReplacePod("web", 1));
    }
    setup
}

pub(super) fn leftover(rng: &mut StdRng) -> Setup {
    let containers = [("proxy", 2, rng.random_bool(0.5)), ("app", 0, false)];
    let mut web = pod("web", 0, &containers);
    web.leftover = Some(Leftover::Unnoticed);
    let mut db = pod("db", 0, &containers);
    db.leftover = Some(Leftover::Finalizer);
    Setup::new(vec![web, db])
}

pub(super) fn with_recreate(rng: &mut StdRng) -> Setup {
    let web = pod(
        "web",
        0,
        &[("proxy", 2, true), ("app", 1, true), ("log", 0, false)],
    );
    let first = request(rng, "first", "web", &["proxy", "app"]);
    let second = request(rng, "second", "web", &["proxy"]);
    let at = rng.random_range(8_000..30_000);
    Setup::new(vec![web])
        .request(at, first.build())
        .request(at + 10_000, second.build())
        .at(at + 2_000, Deed::EndContainer("web", "log"))
}

//! The barrier-manager is killed at every level of a launch; the order holds, and the launch ends.
//!
//! It breaks what other launches need, so it runs alone: see `.config/nextest.toml`.

use std::time::Duration;

use anyhow::Result;
use e2e::{Installation, Look, Ordered, PATIENCE, Space, in_space, our_cluster, wait_for};

/// A leader's lease has to run out before another leads.
const UNTIL_ANOTHER_LEADS: Duration = Duration::from_secs(90);

#[tokio::test]
async fn the_manager_is_killed_at_every_level() {
    if our_cluster()
        .expect("the cluster's state can be read")
        .is_none()
    {
        cluster::say("skipped: things are broken on the test cluster only");
        return;
    }
    in_space("launch-kill", async |space| {
        let services = Installation::new(&space.client);
        services.wait_whole().await?;
        let ordered = Ordered::new("web")
            .by_place()
            .probed("a", None)
            .probed("b", None)
            .probed("c", None);
        space.create_ordered(&ordered).await?;
        let mut begun = Vec::new();
        for name in ["a", "b", "c"] {
            begun.push(name);
            wait_begun(space, &begun).await?;
            let leader = services.leader("barrier-manager").await?;
            services.kill_pod(&leader).await?;
            space.let_up("web", name).await?;
        }
        space.wait_ready("web").await?;
        space.wait_launched("web").await?;
        services.wait_whole().await
    })
    .await;
}

/// Waits until these containers have begun, in that order, and no other.
async fn wait_begun(space: &Space, expected: &[&str]) -> Result<()> {
    let what = format!("{expected:?} to have begun");
    wait_for(&what, PATIENCE + UNTIL_ANOTHER_LEADS, async || {
        let log = space.log("web", "a").await?;
        let begun: Vec<_> = log.lines().collect();
        Ok(Look::is(begun == expected, format!("{begun:?}")))
    })
    .await
}

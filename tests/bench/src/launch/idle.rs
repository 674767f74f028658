//! Many pods with barriers that no node takes: what they weigh in the barrier-manager.

use std::time::Duration;

use anyhow::Result;
use cluster::say;
use e2e::{Look, Ordered, Space, wait_for};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::ListParams};
use model::labels;
use serde_json::json;

/// How many are created at once.
const AT_ONCE: usize = 32;

/// Ten thousand, at a hundred a second and less.
const UNTIL_ALL_HAVE_MAPS: Duration = Duration::from_secs(900);

/// Creates the pods, and waits until each has its ConfigMap.
pub(super) async fn hold(space: &Space, count: u32) -> Result<()> {
    let names = (0..count).map(|index| format!("idle-{index}"));
    let created = stream::iter(names).map(|name| async move {
        let ordered = Ordered::new(&name)
            .container("main", None)
            .container("proxy", Some("1"))
            // No scheduler of that name runs.
            .with("schedulerName", json!("nobody"));
        space.create_ordered(&ordered).await.map(drop)
    });
    created
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    say(format_args!("{count} pods are created"));
    let maps: Api<ConfigMap> = Api::namespaced(space.client.clone(), &space.name);
    let label = format!("{}={}", labels::LAUNCH_BARRIER, labels::LAUNCH_BARRIER_TRUE);
    let all = ListParams::default().labels(&label);
    let wanted = usize::try_from(count)?;
    wait_for(
        "each to have its ConfigMap",
        UNTIL_ALL_HAVE_MAPS,
        async || {
            let made = maps.list_metadata(&all).await?.items.len();
            Ok(Look::is(made == wanted, format!("{made} of {wanted}")))
        },
    )
    .await
}

//! Who asked for a recreation is on the request, and nobody else's word is taken for it.

use e2e::{PodPlan, in_space, kubectl, spec};
use kube::ResourceExt;
use model::labels;
use serde_json::json;

#[tokio::test]
async fn the_user_is_recorded_and_cannot_be_forged_or_changed() {
    in_space("who", async |space| {
        space.start(&PodPlan::new("web").container("main")).await?;
        let request = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "ContainerRecreateRequest",
            "metadata": { "name": "asked", "annotations": { labels::REQUESTED_BY: "somebody-else" } },
            "spec": spec("web", &["main"]),
        });
        let here = ["-n", space.name.as_str()];
        let as_jane = ["--as", "jane", "--as-group", "system:masters", "create", "-f", "-"];
        kubectl(&[&here[..], &as_jane].concat(), &request.to_string()).await?;
        let request = space.wait_completed("asked").await?;
        let by = request.annotations().get(labels::REQUESTED_BY);
        assert_eq!(by.map(String::as_str), Some("jane"));

        let forge = format!("{}=me", labels::REQUESTED_BY);
        let drop = format!("{}-", labels::REQUESTED_BY);
        for change in [&["--overwrite", forge.as_str()][..], &[drop.as_str()]] {
            let words = [&here[..], &["annotate", "crr", "asked"], change].concat();
            let refused = kubectl(&words, "").await.unwrap_err().to_string();
            assert!(refused.contains("it says who created the request"), "{refused}");
        }
        kubectl(&[&here[..], &["annotate", "crr", "asked", "mine=a"]].concat(), "").await?;
        Ok(())
    })
    .await;
}

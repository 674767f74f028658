//! `kubectl crr`, as a user runs it.

use anyhow::Context;
use e2e::{Instance, PodPlan, crr, in_space};
use kube::api::ListParams;
use model::labels;
use serde_json::{Value, json};

fn web() -> PodPlan {
    PodPlan::new("web").container("main").container("neighbour")
}

#[tokio::test]
async fn a_restart_is_waited_for_listed_and_explained() {
    in_space("cli", async |space| {
        let pod = space.start(&web()).await?;
        let restart = ["restart", "web", "-c", "main", "--wait"];
        let (code, output, errors) = crr(space, &restart).await?;
        assert_eq!(code, 0, "{output}{errors}");
        let main = Instance::of(&pod, "main")?;
        let new = space.instance("web", "main").await?;
        assert_eq!(new.restart_count, main.restart_count + 1);
        let neighbour = space.instance("web", "neighbour").await?;
        assert_eq!(neighbour, Instance::of(&pod, "neighbour")?);

        let requests = space.requests().list(&ListParams::default()).await?;
        let request = requests.items.first().context("a request was made")?;
        let name = request.metadata.name.as_deref().unwrap_or_default();
        let (code, table, errors) = crr(space, &["list"]).await?;
        assert_eq!(code, 0, "{errors}");
        assert!(table.contains(name) && table.contains("web"), "{table}");
        let (code, why, errors) = crr(space, &["why", name]).await?;
        assert_eq!(code, 0, "{errors}");
        assert!(why.contains("recreated main"), "{why}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn every_flag_reaches_the_request() {
    in_space("cliflags", async |space| {
        let gates = json!([{ "conditionType": labels::KRUISE_POD_READY }]);
        let pod = space.start(&web().with("readinessGates", gates)).await?;
        let words = "restart web -c neighbour -c main --ordered --force --unready 1s --grace 5s --min-started 1s \
                     --deadline 90s --ttl 1h --failure-policy Ignore --wait -o json";
        let words: Vec<_> = words.split_whitespace().collect();
        let (code, output, errors) = crr(space, &words).await?;
        assert_eq!(code, 0, "{output}{errors}");
        let request: Value = serde_json::from_str(&output)?;
        let strategy = json!({
            "orderedRecreate": true, "forceRecreate": true, "unreadyGracePeriodSeconds": 1,
            "terminationGracePeriodSeconds": 5, "minStartedSeconds": 1, "failurePolicy": "Ignore",
        });
        let spec = &request["spec"];
        assert_eq!(spec["strategy"], strategy);
        assert_eq!((&spec["activeDeadlineSeconds"], &spec["ttlSecondsAfterFinished"]), (&json!(90), &json!(3600)));
        let names: Vec<_> = spec["containers"].as_array().into_iter().flatten().map(|it| &it["name"]).collect();
        assert_eq!(names, ["neighbour", "main"]);
        for name in ["main", "neighbour"] {
            let new = space.instance("web", name).await?;
            assert_eq!(new.restart_count, Instance::of(&pod, name)?.restart_count + 1);
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_mistake_is_told_and_ends_with_two() {
    in_space("climistake", async |space| {
        space.start(&web()).await?;
        let (code, output, errors) = crr(space, &["restart", "web", "-c", "other"]).await?;
        assert_eq!(code, 2, "{output}{errors}");
        assert!(errors.contains("other"), "{errors}");
        let (code, _, errors) = crr(space, &["restart", "web", "--grace", "soon"]).await?;
        assert_eq!(code, 2, "{errors}");
        assert!(errors.contains("--grace"), "{errors}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_dry_run_restarts_nothing() {
    in_space("clidry", async |space| {
        let pod = space.start(&web()).await?;
        for dry_run in ["--dry-run=client", "--dry-run=server"] {
            let (code, output, errors) =
                crr(space, &["restart", "web", dry_run, "-o", "name"]).await?;
            assert_eq!(code, 0, "{errors}");
            let prefix = "containerrecreaterequest.apps.kruise.io/web-";
            assert!(output.starts_with(prefix), "{output}");
        }
        let requests = space.requests().list(&ListParams::default()).await?;
        assert!(requests.items.is_empty());
        assert_eq!(
            space.instance("web", "main").await?,
            Instance::of(&pod, "main")?
        );
        Ok(())
    })
    .await;
}

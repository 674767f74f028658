//! Requests in both versions of the API: what was written as one is read as the other.

use anyhow::Result;
use e2e::{PodPlan, Space, in_space, kubectl, spec};
use kube::{
    ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use model::labels;
use serde_json::{Value, json};

const OLD: &str = "v1alpha1";
const NEW: &str = "v1beta1";
const GROUP: &str = "apps.kruise.io";

async fn read(space: &Space, version: &str, name: &str) -> Result<Value> {
    let request = space.requests_as(version).get(name).await?;
    Ok(serde_json::to_value(request)?)
}

fn written(version: &str, name: &str, annotations: &Value) -> Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": format!("{GROUP}/{version}"),
        "kind": "ContainerRecreateRequest",
        "metadata": { "name": name, "annotations": annotations },
        "spec": spec("web", &["main"]),
    }))?)
}

/// A request that has ended, so that nobody but the test writes to it.
async fn ended(space: &Space, version: &str, name: &str, annotations: Value) -> Result<()> {
    let request = written(version, name, &annotations)?;
    space
        .requests_as(version)
        .create(&PostParams::default(), &request)
        .await?;
    space.wait_completed(name).await.map(drop)
}

async fn patch(space: &Space, version: &str, name: &str, change: Value) -> Result<()> {
    let patched = space
        .requests_as(version)
        .patch(name, &PatchParams::default(), &Patch::Merge(change))
        .await;
    Ok(patched.map(drop)?)
}

fn web() -> PodPlan {
    PodPlan::new("web").container("main")
}

#[tokio::test]
async fn a_request_of_either_version_completes_and_is_the_same_in_the_other() {
    in_space("versions", async |space| {
        space.start(&web()).await?;
        for written_as in [OLD, NEW] {
            let name = format!("as-{written_as}");
            ended(space, written_as, &name, json!({ "mine": "kept" })).await?;
            let mut seen = Vec::new();
            for version in [OLD, NEW] {
                let request = read(space, version, &name).await?;
                assert_eq!(request["apiVersion"], format!("{GROUP}/{version}"));
                assert_eq!(request["metadata"]["annotations"]["mine"], "kept");
                assert_eq!(request["status"]["phase"], "Completed", "{request}");
                seen.push(request);
            }
            for same in [
                "/spec",
                "/metadata/labels",
                "/metadata/uid",
                "/metadata/resourceVersion",
            ] {
                assert_eq!(seen[0].pointer(same), seen[1].pointer(same), "{same}");
            }
            for same in [
                "/status/completionTime",
                "/status/containerRecreateStates",
                "/status/conditions",
            ] {
                assert_eq!(seen[0].pointer(same), seen[1].pointer(same), "{same}");
            }
        }
        let listed = space.requests_as(OLD).list(&Default::default()).await?;
        let names: Vec<_> = listed.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["as-v1alpha1", "as-v1beta1"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn status_of_the_newer_is_annotations_of_the_older() {
    in_space("demote", async |space| {
        space.start(&web()).await?;
        ended(space, NEW, "one", Value::Null).await?;
        let snapshot = json!([{
            "name": "main", "ready": true, "restartCount": 1, "containerID": "containerd://a",
        }]);
        let grace = json!({
            "type": labels::PRE_RECREATE_GRACE, "status": "True", "reason": labels::PRE_RECREATE_GRACE,
            "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z",
        });
        let mut conditions = read(space, NEW, "one").await?["status"]["conditions"].take();
        match conditions.as_array_mut() {
            Some(conditions) => conditions.push(grace.clone()),
            None => conditions = json!([grace]),
        }
        let status = json!({
            "status": { "containerStatusSnapshot": snapshot, "conditions": conditions },
        });
        let status = Patch::Merge(status);
        space
            .requests_as(NEW)
            .patch_status("one", &PatchParams::default(), &status)
            .await?;

        let old = read(space, OLD, "one").await?;
        let annotations = &old["metadata"]["annotations"];
        let shown = annotations[labels::SYNC_CONTAINER_STATUSES].as_str();
        assert_eq!(serde_json::from_str::<Value>(shown.unwrap_or_default())?, snapshot);
        assert_eq!(annotations[labels::UNREADY_ACQUIRED], "2026-01-02T03:04:05Z");
        assert_eq!(old["status"].get("containerStatusSnapshot"), None);

        // A reader of the older writes back what they read.
        let before = read(space, NEW, "one").await?;
        patch(space, OLD, "one", json!({ "metadata": { "labels": { "team": "blue" } } })).await?;
        let mut replaced = space.requests_as(OLD).get("one").await?;
        replaced.labels_mut().insert("seen".to_owned(), "yes".to_owned());
        space.requests_as(OLD).replace("one", &PostParams::default(), &replaced).await?;
        let after = read(space, NEW, "one").await?;
        assert_eq!(after["status"], before["status"]);
        assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);
        assert_eq!(after["metadata"]["labels"]["seen"], "yes");

        let dropped = json!({ "metadata": { "annotations": { labels::UNREADY_ACQUIRED: null } } });
        let refused = patch(space, OLD, "one", dropped).await.unwrap_err().to_string();
        assert!(refused.contains("cannot be changed once it is set"), "{refused}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn annotations_of_the_older_are_status_of_the_newer() {
    in_space("promote", async |space| {
        space.start(&web()).await?;
        ended(space, OLD, "one", Value::Null).await?;
        let snapshot = json!([{
            "name": "main", "ready": false, "restartCount": 2, "containerID": "containerd://b",
        }]);
        let annotations = json!({
            labels::SYNC_CONTAINER_STATUSES: snapshot.to_string(),
            labels::UNREADY_ACQUIRED: "2026-01-02T03:04:05Z",
        });
        patch(
            space,
            OLD,
            "one",
            json!({ "metadata": { "annotations": annotations } }),
        )
        .await?;
        let new = read(space, NEW, "one").await?;
        assert_eq!(new["status"]["containerStatusSnapshot"], snapshot);
        let conditions = new["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let grace = conditions
            .iter()
            .find(|condition| condition["type"] == labels::PRE_RECREATE_GRACE);
        assert_eq!(
            grace.map(|grace| &grace["lastTransitionTime"]),
            Some(&json!("2026-01-02T03:04:05Z"))
        );
        for key in [labels::SYNC_CONTAINER_STATUSES, labels::UNREADY_ACQUIRED] {
            assert_eq!(new["metadata"]["annotations"].get(key), None);
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_annotation_that_cannot_be_read_is_kept() {
    in_space("unreadable", async |space| {
        space.start(&web()).await?;
        let bad = json!({ labels::UNREADY_ACQUIRED: "yesterday" });
        ended(space, OLD, "one", bad).await?;
        let new = read(space, NEW, "one").await?;
        let annotations = &new["metadata"]["annotations"];
        assert_eq!(
            annotations["podwright.dev/unreadable-unready-acquired"],
            "yesterday"
        );
        assert_eq!(annotations.get(labels::UNREADY_ACQUIRED), None);
        let old = read(space, OLD, "one").await?;
        assert_eq!(
            old["metadata"]["annotations"][labels::UNREADY_ACQUIRED],
            "yesterday"
        );

        // Written as the newer, the key means nothing.
        let request = written(
            NEW,
            "two",
            &json!({ labels::UNREADY_ACQUIRED: "2026-01-02T03:04:05Z" }),
        )?;
        let created = space
            .requests_as(NEW)
            .create(&PostParams::default(), &request)
            .await?;
        assert!(!created.annotations().contains_key(labels::UNREADY_ACQUIRED));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn both_are_explained_and_shown_with_their_columns() {
    in_space("explain", async |space| {
        space.start(&web()).await?;
        ended(space, NEW, "shown", Value::Null).await?;
        for version in [OLD, NEW] {
            let api_version = format!("--api-version={GROUP}/{version}");
            let text = kubectl(&["explain", "crr.spec.strategy", &api_version], "").await?;
            for words in [
                &format!("VERSION:    {version}"),
                "How the containers are recreated",
                "orderedRecreate",
            ] {
                assert!(text.contains(words), "{words}: {text}");
            }
            // Only the newer says which words there are.
            assert_eq!(
                text.contains("enum: Fail, Ignore"),
                version == NEW,
                "{text}"
            );
            let resource = format!("containerrecreaterequests.{version}.{GROUP}");
            let table = kubectl(&["-n", &space.name, "get", &resource], "").await?;
            let rows: Vec<Vec<&str>> = table
                .lines()
                .map(|line| line.split_whitespace().collect())
                .collect();
            assert_eq!(rows[0], ["NAME", "PHASE", "POD", "NODE", "AGE"], "{table}");
            assert_eq!(rows[1][..3], ["shown", "Completed", "web"], "{table}");
        }
        Ok(())
    })
    .await;
}

/// The older's schema takes what OpenKruise's took; what it means is still reviewed.
#[tokio::test]
async fn the_older_is_reviewed_in_the_same_words() {
    in_space("reviewed", async |space| {
        space.start(&web()).await?;
        for version in [OLD, NEW] {
            let mut wrong = written(version, "wrong", &Value::Null)?;
            wrong.data["spec"]["strategy"] =
                json!({ "failurePolicy": "Perhaps", "minStartedSeconds": -1 });
            let created = space
                .requests_as(version)
                .create(&PostParams::default(), &wrong)
                .await;
            let refused = created.unwrap_err().to_string();
            for words in [
                "allowed are Fail and Ignore",
                "is -1; it must be at least 0",
            ] {
                assert!(refused.contains(words), "{version}: {refused}");
            }
        }
        Ok(())
    })
    .await;
}

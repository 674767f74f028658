//! What is refused, and that the message names the field and what is wrong with it.

use anyhow::Result;
use e2e::{PodPlan, Space, in_space, kubectl, spec};
use kube::api::{Patch, PatchParams};
use model::labels;
use serde_json::{Value, json};

/// The creation is refused with that code, and the message has all these words.
async fn check(space: &Space, wrong: Value, code: u16, words: &[&str]) -> Result<()> {
    match space.try_request("wrong", wrong.clone()).await? {
        Ok(_) => panic!("{wrong} was not refused"),
        Err(refused) => check_message(&refused, code, words),
    }
    Ok(())
}

fn check_message(refused: &kube::core::Status, code: u16, words: &[&str]) {
    assert_eq!(refused.code, code, "{}", refused.message);
    for word in words {
        assert!(
            refused.message.contains(word),
            "{word:?} is not in: {}",
            refused.message
        );
    }
}

fn with(mut spec: Value, pointer: &str, value: Value) -> Value {
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer has a slash");
    spec.pointer_mut(parent).expect("the parent is there")[field] = value;
    spec
}

#[tokio::test]
async fn a_pod_that_is_not_there_not_yet_there_or_finished() {
    in_space("refuse-pods", async |space| {
        let field = "spec.podName";
        let no_pod = spec("nobody", &["main"]);
        check(
            space,
            no_pod,
            400,
            &[field, "no pod nobody is in this namespace"],
        )
        .await?;

        let nowhere = json!({ "podwright.dev/nowhere": "true" });
        let pending = PodPlan::new("pending")
            .container("main")
            .with("nodeSelector", nowhere);
        space.create_pod(&pending).await?;
        let request = spec("pending", &["main"]);
        check(
            space,
            request,
            400,
            &[field, "pod pending is pending: it has no node yet"],
        )
        .await?;

        let finished = PodPlan::new("finished")
            .container_running("main", "true")
            .with("restartPolicy", json!("Never"));
        space.create_pod(&finished).await?;
        space.wait_phase("finished", "Succeeded").await?;
        let request = spec("finished", &["main"]);
        check(
            space,
            request,
            400,
            &[field, "pod finished has finished: its phase is Succeeded"],
        )
        .await
    })
    .await;
}

#[tokio::test]
async fn containers_that_cannot_be_meant() {
    in_space("refuse-names", async |space| {
        space.start(&PodPlan::new("web").container("main")).await?;
        let of = |containers: &[&str]| spec("web", containers);
        check(
            space,
            of(&[]),
            400,
            &["spec.containers", "must name at least one container"],
        )
        .await?;
        let twice = ["spec.containers[1].name", "container main is named twice"];
        check(space, of(&["main", "main"]), 400, &twice).await?;
        let unknown = [
            "spec.containers[0].name",
            "the pod has no container sidecar; it has main",
        ];
        check(space, of(&["sidecar"]), 400, &unknown).await?;

        let given = [
            ("preStop", json!({ "exec": { "command": ["true"] } })),
            ("ports", json!([{ "containerPort": 80 }])),
            (
                "statusContext",
                json!({ "containerID": "containerd://a", "restartCount": 0 }),
            ),
        ];
        for (field, value) in given {
            let wrong = with(of(&["main"]), &format!("/containers/0/{field}"), value);
            let path = format!("spec.containers[0].{field}");
            check(space, wrong, 400, &[&path, "is read-only"]).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn numbers_and_words_that_make_no_sense() {
    in_space("refuse-values", async |space| {
        space.start(&PodPlan::new("web").container("main")).await?;
        let right = || with(spec("web", &["main"]), "/strategy", json!({}));
        let cases = [
            (
                "/strategy/terminationGracePeriodSeconds",
                json!(-1),
                "must be at least 0",
            ),
            (
                "/strategy/unreadyGracePeriodSeconds",
                json!(-1),
                "must be at least 0",
            ),
            (
                "/strategy/minStartedSeconds",
                json!(-1),
                "must be at least 0",
            ),
            ("/ttlSecondsAfterFinished", json!(-1), "must be at least 0"),
            ("/activeDeadlineSeconds", json!(2), "must be at least 3"),
            (
                "/strategy/failurePolicy",
                json!("Perhaps"),
                "allowed are Fail and Ignore",
            ),
        ];
        for (pointer, value, words) in cases {
            let field = format!("spec{}", pointer.replace('/', "."));
            check(space, with(right(), pointer, value), 400, &[&field, words]).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn all_faults_are_told_at_once() {
    in_space("refuse-all", async |space| {
        let wrong = json!({ "podName": "nobody", "containers": [], "activeDeadlineSeconds": 1 });
        let words = [
            "spec.podName",
            "spec.containers",
            "spec.activeDeadlineSeconds",
        ];
        check(space, wrong, 400, &words).await
    })
    .await;
}

#[tokio::test]
async fn a_request_stays_what_it_was() {
    in_space("refuse-change", async |space| {
        space.start(&PodPlan::new("web").container("main")).await?;
        space.recreate("fixed", "web", &["main"]).await?;
        space.wait_completed("fixed").await?;
        let name_label = |name: &str| json!({ "metadata": { "labels": { name: "other" } } });
        let cases = [
            (
                json!({ "spec": { "activeDeadlineSeconds": 100 } }),
                "spec: cannot be changed",
            ),
            (
                name_label(labels::CRR_POD_UID),
                "crr.apps.kruise.io/pod-uid]: cannot be changed",
            ),
            (
                name_label(labels::CRR_NODE_NAME),
                "crr.apps.kruise.io/node-name]: cannot be changed",
            ),
        ];
        for (change, words) in cases {
            let patch = Patch::Merge(&change);
            let changed = space
                .requests()
                .patch("fixed", &PatchParams::default(), &patch)
                .await;
            match changed {
                Err(kube::Error::Api(refused)) => check_message(&refused, 403, &[words]),
                other => panic!("{change} gave {other:?}"),
            }
        }
        kubectl(
            &["-n", &space.name, "label", "crr", "fixed", "team=blue"],
            "",
        )
        .await?;
        Ok(())
    })
    .await;
}

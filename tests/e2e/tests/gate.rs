//! Which new pods get the readiness gate. The pods are created on trial only: the API server's answer tells.

use anyhow::Result;
use e2e::{PodPlan, Space, in_space};
use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt, api::PostParams};
use model::labels;
use serde_json::{Value, json};

/// What becomes of a pod with that metadata and those gates: its gates, and whether it bears our label.
async fn on_trial(space: &Space, metadata: Value, gates: &[&str]) -> Result<(Vec<String>, bool)> {
    let mut pod = PodPlan::new("trial").container("main").manifest();
    for (field, value) in metadata.as_object().into_iter().flatten() {
        pod["metadata"][field] = value.clone();
    }
    let gates = gates.iter().map(|gate| json!({ "conditionType": gate }));
    pod["spec"]["readinessGates"] = gates.collect();
    let pod: Pod = serde_json::from_value(pod)?;
    let on_trial = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let pod = space.pods().create(&on_trial, &pod).await?;
    let is_labelled = pod.labels().get(labels::READINESS_GATE).map(String::as_str) == Some("true");
    let gates = pod.spec.and_then(|spec| spec.readiness_gates);
    let gates = gates.into_iter().flatten();
    Ok((gates.map(|gate| gate.condition_type).collect(), is_labelled))
}

fn owned_by(api_version: &str) -> Value {
    let owner = json!({
        "apiVersion": api_version, "kind": "CloneSet", "name": "web", "controller": true,
        "uid": "5a0d8f6e-0000-4000-8000-000000000000",
    });
    json!({ "ownerReferences": [owner] })
}

#[tokio::test]
async fn pods_of_kruise_and_those_that_ask_get_the_gate_and_others_do_not() {
    in_space("gate", async |space| {
        let gated = (vec![labels::KRUISE_POD_READY.to_owned()], true);
        let asks = json!({ "labels": { labels::READINESS_GATE: "true" } });
        assert_eq!(on_trial(space, asks.clone(), &[]).await?, gated);
        assert_eq!(on_trial(space, asks, &["KruisePodReady"]).await?, gated);
        let kruise = owned_by("apps.kruise.io/v1alpha1");
        assert_eq!(on_trial(space, kruise, &[]).await?, gated);
        let own_gate = on_trial(space, json!({}), &["KruisePodReady"]).await?;
        assert_eq!(own_gate, gated, "it has to be found to be opened");

        let as_it_was = (Vec::new(), false);
        assert_eq!(on_trial(space, json!({}), &[]).await?, as_it_was);
        assert_eq!(on_trial(space, owned_by("apps/v1"), &[]).await?, as_it_was);
        let declined = json!({ "labels": { labels::READINESS_GATE: "false" } });
        assert_eq!(on_trial(space, declined, &[]).await?, as_it_was);
        let other = on_trial(space, json!({}), &["example.com/other"]).await?;
        assert_eq!(other, (vec!["example.com/other".to_owned()], false));
        Ok(())
    })
    .await;
}

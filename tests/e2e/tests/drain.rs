//! `unreadyGracePeriodSeconds`: the pod is out of service before its containers are stopped, and back after.

use anyhow::Result;
use e2e::{Instance, PATIENCE, PodPlan, Space, in_space, spec, wait_for};
use k8s_openapi::api::core::v1::PodCondition;
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use model::labels;
use serde_json::{Value, json};

fn gated() -> PodPlan {
    let gates = json!([{ "conditionType": labels::KRUISE_POD_READY }]);
    PodPlan::new("web")
        .container("main")
        .with("readinessGates", gates)
}

fn drained(seconds: u32) -> Value {
    let mut spec = spec("web", &["main"]);
    spec["strategy"] = json!({ "unreadyGracePeriodSeconds": seconds });
    spec
}

async fn condition(space: &Space, name: &str) -> Result<Option<PodCondition>> {
    let status = space.pods().get("web").await?.status.unwrap_or_default();
    let mut conditions = status.conditions.into_iter().flatten();
    Ok(conditions.find(|condition| condition.type_ == name))
}

async fn wait_gate(space: &Space, status: &str) -> Result<PodCondition> {
    let what = format!("the gate to be {status}");
    wait_for(&what, PATIENCE, async || {
        let condition = condition(space, labels::KRUISE_POD_READY).await?;
        Ok(match condition {
            Some(condition) if condition.status == status => e2e::Look::Found(condition),
            other => e2e::Look::NotYet(format!("{other:?}")),
        })
    })
    .await
}

#[tokio::test]
async fn a_pod_is_drained_before_the_stop_and_ready_after() {
    in_space("drain", async |space| {
        let pod = space.start(&gated()).await?;
        wait_gate(space, "True").await?;
        let main = Instance::of(&pod, "main")?;
        space.request("drained", drained(3)).await?;
        let shut = wait_gate(space, "False").await?;
        assert_eq!(
            shut.message.as_deref(),
            Some(&*format!(
                r#"[{{"userAgent":"ContainerRecreateRequest","key":"{}/drained"}}]"#,
                space.name
            ))
        );
        assert_eq!(
            space.instance("web", "main").await?,
            main,
            "nothing is stopped yet"
        );
        let request = space.requests().get("drained").await?;
        assert_eq!(request.finalizers(), [labels::UNREADY_ACQUIRED]);

        let request = space.wait_completed("drained").await?;
        assert!(request.finalizers().is_empty());
        let conditions = request.status.unwrap_or_default().conditions;
        let began = conditions
            .iter()
            .find(|condition| condition.type_ == labels::PRE_RECREATE_GRACE);
        assert_eq!(began.map(|condition| &*condition.status), Some("True"));
        let open = wait_gate(space, "True").await?;
        assert_eq!(open.message.as_deref(), Some("[]"));
        wait_pod_ready(space, "True").await
    })
    .await;
}

#[tokio::test]
async fn a_request_deleted_in_its_drain_lets_the_pod_go() {
    in_space("undrain", async |space| {
        let pod = space.start(&gated()).await?;
        wait_gate(space, "True").await?;
        space.request("drained", drained(600)).await?;
        wait_gate(space, "False").await?;
        let requests = space.requests();
        requests.delete("drained", &DeleteParams::default()).await?;
        wait_gate(space, "True").await?;
        wait_for("the request to be gone", PATIENCE, async || {
            let request = requests.get_opt("drained").await?;
            Ok(e2e::Look::is(request.is_none(), format!("{request:?}")))
        })
        .await?;
        assert_eq!(
            space.instance("web", "main").await?,
            Instance::of(&pod, "main")?
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_pod_without_the_gate_is_only_waited_with() {
    in_space("ungated", async |space| {
        space.start(&PodPlan::new("web").container("main")).await?;
        space.request("drained", drained(1)).await?;
        let request = space.wait_completed("drained").await?;
        assert_eq!(
            e2e::state_of(&request, "main").expect("listed").phase,
            "Succeeded"
        );
        assert!(condition(space, labels::KRUISE_POD_READY).await?.is_none());
        Ok(())
    })
    .await;
}

/// The entry of another program in the gate's message, with which it keeps the pod out of service.
const FOREIGN: &str = r#"{"userAgent":"InPlaceUpdate","key":"web"}"#;

/// Our entry there.
fn ours(space: &Space, request: &str) -> String {
    let key = format!("{}/{request}", space.name);
    format!(r#"{{"userAgent":"ContainerRecreateRequest","key":"{key}"}}"#)
}

/// What another program does to the gate: OpenKruise's controllers write it just so.
async fn write_gate(space: &Space, status: &str, entries: &[&str]) -> Result<()> {
    let condition = json!({
        "type": labels::KRUISE_POD_READY,
        "status": status,
        "message": format!("[{}]", entries.join(",")),
    });
    let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
    let pods = space.pods();
    pods.patch_status("web", &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// Waits until the gate is so and these are the ones that hold it.
async fn wait_held_by(space: &Space, status: &str, entries: &[&str]) -> Result<()> {
    let expected = Some(format!("[{}]", entries.join(",")));
    wait_for(
        &format!("the gate to be {status} by {expected:?}"),
        PATIENCE,
        async || {
            let gate = condition(space, labels::KRUISE_POD_READY).await?;
            let is_so = |gate: &PodCondition| gate.status == status && gate.message == expected;
            Ok(e2e::Look::is(
                gate.as_ref().is_some_and(is_so),
                format!("{gate:?}"),
            ))
        },
    )
    .await
}

async fn wait_pod_ready(space: &Space, status: &str) -> Result<()> {
    wait_for(&format!("Ready to be {status}"), PATIENCE, async || {
        let ready = condition(space, "Ready").await?;
        let is_so = ready.as_ref().is_some_and(|ready| ready.status == status);
        Ok(e2e::Look::is(is_so, format!("{ready:?}")))
    })
    .await
}

#[tokio::test]
async fn a_pod_that_another_program_holds_stays_out_of_service_after_the_request() {
    in_space("before", async |space| {
        space.start(&gated()).await?;
        wait_gate(space, "True").await?;
        write_gate(space, "False", &[FOREIGN]).await?;
        space.request("drained", drained(2)).await?;
        wait_held_by(space, "False", &[&ours(space, "drained"), FOREIGN]).await?;
        let request = space.wait_completed("drained").await?;
        assert_eq!(
            e2e::state_of(&request, "main").expect("listed").phase,
            "Succeeded"
        );
        wait_held_by(space, "False", &[FOREIGN]).await?;
        wait_pod_ready(space, "False").await?;

        // Its owner lets go, and nobody else holds it.
        write_gate(space, "True", &[]).await?;
        wait_pod_ready(space, "True").await
    })
    .await;
}

#[tokio::test]
async fn the_last_to_let_go_opens_the_gate_whoever_came_first() {
    in_space("during", async |space| {
        space.start(&gated()).await?;
        wait_gate(space, "True").await?;
        let requests = space.requests();
        space.request("first", drained(600)).await?;
        let first = ours(space, "first");
        wait_held_by(space, "False", &[&first]).await?;
        // Another program comes meanwhile: it is not forgotten when the request is.
        write_gate(space, "False", &[&first, FOREIGN]).await?;
        requests.delete("first", &DeleteParams::default()).await?;
        wait_held_by(space, "False", &[FOREIGN]).await?;

        // It goes before the second request does: that one opens the gate.
        space.request("second", drained(600)).await?;
        let second = ours(space, "second");
        wait_held_by(space, "False", &[&second, FOREIGN]).await?;
        write_gate(space, "False", &[&second]).await?;
        requests.delete("second", &DeleteParams::default()).await?;
        wait_held_by(space, "True", &[]).await?;
        wait_pod_ready(space, "True").await
    })
    .await;
}

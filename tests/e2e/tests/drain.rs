//! `unreadyGracePeriodSeconds`: the pod is out of service before its containers are stopped, and back after.

use anyhow::Result;
use e2e::{Instance, PATIENCE, PodPlan, Space, in_space, spec, wait_for};
use k8s_openapi::api::core::v1::PodCondition;
use kube::{ResourceExt, api::DeleteParams};
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
        wait_for("the pod to be ready", PATIENCE, async || {
            let ready = condition(space, "Ready").await?;
            let is_ready = ready.as_ref().is_some_and(|ready| ready.status == "True");
            Ok(e2e::Look::is(is_ready, format!("{ready:?}")))
        })
        .await
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

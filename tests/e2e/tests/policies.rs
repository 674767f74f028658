//! What a failed container means for the others, and pods whose containers are not always started again.

use anyhow::{Context, Result};
use e2e::{PodPlan, Space, in_space, spec, state_of};
use k8s_api::crd::ContainerRecreateRequest;
use serde_json::{Value, json};

/// Runs until it is told to end, and ends with that code.
fn ends_with(code: u8) -> String {
    format!("trap 'exit {code}' TERM; tail -f /dev/null & wait")
}

/// A pod whose container `first` will not come back; `second` will, `observer` is left alone.
fn first_fails() -> PodPlan {
    PodPlan::new("web")
        .container_running("first", &ends_with(0))
        .container_running("second", &ends_with(3))
        .container("observer")
        .with("restartPolicy", json!("OnFailure"))
}

fn in_order(policy: &str) -> Value {
    let mut spec = spec("web", &["first", "second"]);
    spec["strategy"] = json!({ "orderedRecreate": true, "failurePolicy": policy });
    spec
}

/// `<phase> <isKilled>` of a container.
fn told(request: &ContainerRecreateRequest, container: &str) -> Result<String> {
    let state = state_of(request, container).context("it is in the list")?;
    let is_killed = state.is_killed.unwrap_or_default();
    Ok(format!("{} {is_killed}", state.phase))
}

fn reason(request: &ContainerRecreateRequest) -> Option<&str> {
    let conditions = &request.status.as_ref()?.conditions;
    let mut conditions = conditions.iter();
    conditions
        .find(|condition| condition.type_ == "Succeeded")
        .map(|condition| &*condition.reason)
}

async fn restarts(space: &Space, container: &str) -> Result<i32> {
    Ok(space.instance("web", container).await?.restart_count)
}

#[tokio::test]
async fn ignore_goes_on_after_a_failed_container() {
    in_space("ignore", async |space| {
        space.start(&first_fails()).await?;
        space.request("both", in_order("Ignore")).await?;
        let request = space.wait_completed("both").await?;
        assert_eq!(told(&request, "first")?, "Failed true");
        assert_eq!(told(&request, "second")?, "Succeeded true");
        assert_eq!(reason(&request), Some("ContainerFailed"));
        assert_eq!(restarts(space, "second").await?, 1);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn fail_ends_at_the_first_failed_container() {
    in_space("fail", async |space| {
        let pod = space.start(&first_fails()).await?;
        space.request("both", in_order("Fail")).await?;
        let request = space.wait_completed("both").await?;
        assert_eq!(told(&request, "first")?, "Failed true");
        assert_eq!(told(&request, "second")?, "Pending false");
        assert_eq!(reason(&request), Some("ContainerFailed"));
        let second = space.instance("web", "second").await?;
        assert_eq!(
            second,
            e2e::Instance::of(&pod, "second")?,
            "it is left alone"
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn on_failure_ends_for_a_container_that_exits_well() {
    in_space("onfailure", async |space| {
        space.start(&first_fails()).await?;
        space.recreate("well", "web", &["first"]).await?;
        let request = space.wait_completed("well").await?;
        assert_eq!(told(&request, "first")?, "Failed true");
        let state = state_of(&request, "first").context("it is in the list")?;
        let message = state.message.as_deref().unwrap_or_default();
        assert!(
            message.contains("exited with code 0 and restartPolicy is OnFailure"),
            "{message}"
        );
        assert_eq!(restarts(space, "first").await?, 0);

        space.recreate("badly", "web", &["second"]).await?;
        let request = space.wait_completed("badly").await?;
        assert_eq!(told(&request, "second")?, "Succeeded true");
        assert_eq!(reason(&request), Some("AllRecreated"));
        Ok(())
    })
    .await;
}

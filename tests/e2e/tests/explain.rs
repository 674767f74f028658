//! What a request says of itself: conditions, events and the snapshot, read as a user would.

use anyhow::Result;
use e2e::{Instance, PATIENCE, PodPlan, Space, in_space, spec, wait_for};
use k8s_openapi::api::core::v1::Event;
use kube::{Api, api::ListParams};
use serde_json::json;

fn web() -> PodPlan {
    PodPlan::new("web").container("main")
}

/// `kind/name reason` of every event with one of our reasons, as they were told.
async fn told(space: &Space) -> Result<Vec<String>> {
    let events: Api<Event> = Api::namespaced(space.client.clone(), &space.name);
    let events = events.list(&ListParams::default()).await?;
    let mut told: Vec<_> = events
        .items
        .into_iter()
        .filter(|event| event.reporting_component.as_deref() == Some("crr-scheduler"))
        .map(|event| {
            let about = event.involved_object;
            format!(
                "{}/{} {} {}: {}",
                about.kind.unwrap_or_default(),
                about.name.unwrap_or_default(),
                event.type_.unwrap_or_default(),
                event.reason.unwrap_or_default(),
                event.message.unwrap_or_default(),
            )
        })
        .collect();
    told.sort();
    Ok(told)
}

async fn check_told(space: &Space, expected: &[&str]) -> Result<()> {
    let what = format!("the events {expected:?}");
    wait_for(&what, PATIENCE, async || {
        let told = told(space).await?;
        let as_wanted = told.len() == expected.len()
            && told
                .iter()
                .zip(expected)
                .all(|(told, begin)| told.starts_with(begin));
        Ok(e2e::Look::is(as_wanted, format!("{told:#?}")))
    })
    .await
}

#[tokio::test]
async fn kubectl_waits_for_success() {
    in_space("wait", async |space| {
        space.start(&web()).await?;
        space.recreate("awaited", "web", &["main"]).await?;
        let wait = ["-n", &space.name, "wait", "crr/awaited", "--timeout=60s"];
        let wait = [&wait[..], &["--for=condition=Succeeded"]].concat();
        let said = e2e::kubectl(&wait, "").await?;
        assert!(said.contains("condition met"), "{said}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_end_has_conditions_and_the_new_instance() {
    in_space("conditions", async |space| {
        space.start(&web()).await?;
        space.recreate("told", "web", &["main"]).await?;
        let status = space
            .wait_completed("told")
            .await?
            .status
            .expect("it ended");
        let conditions: Vec<_> = status
            .conditions
            .iter()
            .map(|condition| (&*condition.type_, &*condition.status, &*condition.reason))
            .collect();
        assert_eq!(
            conditions,
            [
                ("Accepted", "True", "Admitted"),
                ("Dispatched", "True", "NodeAnswered"),
                ("Succeeded", "True", "AllRecreated"),
            ]
        );
        let new = space.instance("web", "main").await?;
        assert_eq!(
            json!(status.container_status_snapshot),
            json!([{
                "name": "main", "ready": true,
                "restartCount": new.restart_count, "containerID": new.container_id,
            }])
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_requested_restart_can_be_told_from_a_crash() {
    in_space("events", async |space| {
        space.start(&web()).await?;
        space.recreate("asked", "web", &["main"]).await?;
        space.wait_completed("asked").await?;
        let expected = [
            "ContainerRecreateRequest/asked Normal Recreated: recreated main",
            "Pod/web Normal Killing: Stopping container main by ContainerRecreateRequest asked, requested by ",
        ];
        check_told(space, &expected).await?;
        // Who looks for OpenKruise's events finds these.
        let events: Api<Event> = Api::namespaced(space.client.clone(), &space.name);
        let told = events.list(&ListParams::default()).await?;
        let mut told = told.items.into_iter();
        let killing = told.find(|event| event.reason.as_deref() == Some("Killing"));
        let source = killing.and_then(|event| event.source?.component);
        assert_eq!(source.as_deref(), Some("kruise-daemon-crr"));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_hook_that_fails_is_told_and_the_stop_goes_on() {
    in_space("badhook", async |space| {
        let plan = PodPlan::new("web").container_with_hook("main", "echo no space left; exit 3");
        space.start(&plan).await?;
        space.recreate("asked", "web", &["main"]).await?;
        space.wait_completed("asked").await?;
        let expected = [
            "ContainerRecreateRequest/asked Normal Recreated: ",
            "Pod/web Normal Killing: ",
            "Pod/web Warning FailedPreStopHook: preStop hook of container main failed: ",
        ];
        check_told(space, &expected).await
    })
    .await;
}

#[tokio::test]
async fn a_deadline_leaves_the_rest_alone_and_says_what_it_waited_for() {
    in_space("deadline", async |space| {
        let hook = "echo begin >> /shared/log; while [ ! -e /shared/go ]; do sleep 0.1; done";
        let plan = PodPlan::new("web")
            .container_with_hook("slow", hook)
            .container("after")
            .container("observer");
        let pod = space.start(&plan).await?;
        let mut wanted = spec("web", &["slow", "after"]);
        wanted["activeDeadlineSeconds"] = json!(3);
        space.request("late", wanted).await?;
        let status = space
            .wait_completed("late")
            .await?
            .status
            .expect("it ended");
        let deadline = "recreating has exceeded the activeDeadlineSeconds";
        assert_eq!(status.message.as_deref(), Some(deadline));
        let succeeded = status.conditions.last().expect("there are some");
        assert_eq!(
            (&*succeeded.type_, &*succeeded.status, &*succeeded.reason),
            ("Succeeded", "False", "DeadlineExceeded")
        );
        assert!(
            succeeded.message.contains("container slow: "),
            "{}",
            succeeded.message
        );

        // The stop that was in flight runs on and is still told.
        let touch = [
            "-n",
            &space.name,
            "exec",
            "web",
            "-c",
            "observer",
            "--",
            "touch",
            "/shared/go",
        ];
        e2e::kubectl(&touch, "").await?;
        let told = "to say that slow was stopped";
        space
            .wait_request("late", told, PATIENCE, |request| {
                e2e::state_of(request, "slow").is_some_and(|state| state.is_killed == Some(true))
            })
            .await?;
        let slow = Instance::of(&pod, "slow")?;
        space.wait_replaced("web", "slow", &slow).await?;
        assert_eq!(
            space.instance("web", "after").await?,
            Instance::of(&pod, "after")?
        );
        Ok(())
    })
    .await;
}

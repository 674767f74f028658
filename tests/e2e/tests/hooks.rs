//! preStop hooks that are not commands: they mean what they mean to the kubelet.

use e2e::{PodPlan, in_space, state_of};
use serde_json::{Value, json};

/// A web server that logs each call where all containers of the pod see it.
const SERVER: &str = "mkdir /www; echo bye > /www/bye; httpd -f -v -p 8080 -h /www 2>> /shared/log & \
    trap 'exit 0' TERM; tail -f /dev/null & wait $!";

fn server(hook: Value) -> PodPlan {
    PodPlan::new("web")
        .container_running("main", SERVER)
        .changed(|container| {
            container["ports"] = json!([{ "name": "web", "containerPort": 8080 }]);
            container["readinessProbe"] =
                json!({ "tcpSocket": { "port": 8080 }, "periodSeconds": 1 });
            container["lifecycle"] = json!({ "preStop": hook });
        })
        .container("observer")
}

#[tokio::test]
async fn http_get_without_a_host_calls_the_named_port_of_the_pod() {
    in_space("http", async |space| {
        let hook = json!({ "httpGet": {
            "path": "/bye", "port": "web", "httpHeaders": [{ "name": "X-From", "value": "hook" }],
        } });
        space.start(&server(hook)).await?;
        space.recreate("called", "web", &["main"]).await?;
        let request = space.wait_completed("called").await?;
        assert_eq!(
            state_of(&request, "main").expect("listed").phase,
            "Succeeded"
        );
        // The observer looks for new lines every second.
        e2e::wait_for("the call in the server's log", e2e::PATIENCE, async || {
            let log = space.log("web", "observer").await?;
            Ok(e2e::Look::is(log.contains("response:200"), log))
        })
        .await
    })
    .await;
}

#[tokio::test]
async fn a_hook_that_outlasts_the_grace_is_cut_off_and_told() {
    in_space("cutoff", async |space| {
        let mut wanted = e2e::spec("web", &["main"]);
        wanted["strategy"] = json!({ "terminationGracePeriodSeconds": 2 });
        let hook = json!({ "sleep": { "seconds": 20 } });
        let plan = server(hook).with("terminationGracePeriodSeconds", json!(25));
        space.start(&plan).await?;
        space.request("short", wanted).await?;
        let request = space.wait_completed("short").await?;
        assert_eq!(
            state_of(&request, "main").expect("listed").phase,
            "Succeeded"
        );
        let events = [
            "-n",
            &space.name,
            "get",
            "events",
            "--field-selector=reason=FailedPreStopHook",
            "-o",
            "name",
        ];
        e2e::wait_for("the event", e2e::PATIENCE, async || {
            let told = e2e::kubectl(&events, "").await?;
            Ok(e2e::Look::is(!told.trim().is_empty(), "none"))
        })
        .await
    })
    .await;
}

//! preStop hooks that are not commands: they mean what they mean to the kubelet.

use anyhow::{Context, Result};
use e2e::{Look, NAMESPACE, PATIENCE, PodPlan, Space, in_space, state_of, wait_for};
use k8s_openapi::api::core::v1::{Event, Service};
use kube::{Api, api::ListParams};
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
        wait_for("the call in the server's log", PATIENCE, async || {
            let log = space.log("web", "observer").await?;
            Ok(Look::is(log.contains("response:200"), log))
        })
        .await
    })
    .await;
}

/// Where a pod's listener listens.
const PORT: u16 = 9000;

/// A pod whose hook is heard by a shell script in the container beside it; it sees each connection as its input.
fn heard(hook: Value, script: &str) -> PodPlan {
    let command = format!(
        "cat > /tmp/heard <<'END'\n{script}\nEND\n\
         trap 'exit 0' TERM; (while :; do nc -l -p {PORT} -e sh /tmp/heard; done) & wait"
    );
    let is_listening = format!("cat /proc/net/tcp /proc/net/tcp6 | grep -q ':{PORT:X} .* 0A '");
    PodPlan::new("web")
        .container("main")
        .changed(|container| {
            container["ports"] = json!([{ "name": "bye", "containerPort": PORT }]);
            container["lifecycle"] = json!({ "preStop": hook });
        })
        .container_running("listener", &command)
        .changed(|container| {
            let command = ["sh", "-c", is_listening.as_str()];
            container["readinessProbe"] =
                json!({ "exec": { "command": command }, "periodSeconds": 1 });
        })
}

/// What was said of hooks that failed.
async fn failures(space: &Space) -> Result<Vec<String>> {
    let events: Api<Event> = Api::namespaced(space.client.clone(), &space.name);
    let events = events.list(&ListParams::default()).await?;
    let failed = events
        .items
        .into_iter()
        .filter(|event| event.reason.as_deref() == Some("FailedPreStopHook"));
    Ok(failed.filter_map(|event| event.message).collect())
}

/// The kubelet refuses to run such a hook; OpenKruise skips it. A request that names one means it.
#[tokio::test]
async fn tcp_socket_connects_to_the_named_port_of_the_pod() {
    in_space("tcp", async |space| {
        let hook = json!({ "tcpSocket": { "port": "bye" } });
        space
            .start(&heard(hook, "echo connected >> /shared/log"))
            .await?;
        space.recreate("called", "web", &["main"]).await?;
        let request = space.wait_completed("called").await?;
        let state = state_of(&request, "main").context("it is in the list")?;
        assert_eq!(state.phase, "Succeeded");
        space.wait_line("web", "listener", "connected").await?;
        assert_eq!(space.count_lines("web", "listener", "connected").await?, 1);
        assert_eq!(failures(space).await?, [""; 0]);
        Ok(())
    })
    .await;
}

/// CRI tells no address of such a pod; the API does.
#[tokio::test]
async fn a_hook_without_a_host_reaches_a_pod_in_the_nodes_network() {
    in_space("node-net", async |space| {
        // Nobody else's on a node, and not of those that are drawn.
        let port = 19_473;
        let hook = json!({ "httpGet": { "path": "/bye", "port": port } });
        let serve = SERVER.replace("8080", &port.to_string());
        let plan = PodPlan::new("web")
            .container_running("main", &serve)
            .changed(|container| {
                container["ports"] = json!([{ "containerPort": port, "hostPort": port }]);
                container["readinessProbe"] =
                    json!({ "tcpSocket": { "port": port }, "periodSeconds": 1 });
                container["lifecycle"] = json!({ "preStop": hook });
            })
            .container("observer")
            .with("hostNetwork", json!(true));
        space.start(&plan).await?;
        space.recreate("called", "web", &["main"]).await?;
        space.wait_completed("called").await?;
        wait_for("the call in the server's log", PATIENCE, async || {
            let log = space.log("web", "observer").await?;
            Ok(Look::is(log.contains("response:200"), log))
        })
        .await?;
        assert_eq!(failures(space).await?, [""; 0]);
        Ok(())
    })
    .await;
}

/// The API server takes such a hook. The kubelet finds out when it stops the container, tells it, and goes on.
#[tokio::test]
async fn a_hook_for_a_port_that_is_not_there_is_told_and_the_stop_goes_on() {
    in_space("no-port", async |space| {
        let hook = json!({ "httpGet": { "port": "missing" } });
        space.start(&heard(hook, "true")).await?;
        space.recreate("called", "web", &["main"]).await?;
        let request = space.wait_completed("called").await?;
        let state = state_of(&request, "main").context("it is in the list")?;
        assert_eq!(state.phase, "Succeeded");
        let told = wait_for("the hook's failure", PATIENCE, async || {
            let failures = failures(space).await?;
            Ok(Look::is(!failures.is_empty(), "none is told"))
        });
        told.await?;
        let words =
            "preStop hook of container main failed: the container has no port named \"missing\"";
        assert_eq!(failures(space).await?, [words]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn http_get_sends_its_headers_to_a_port_by_number() {
    in_space("headers", async |space| {
        let hook = json!({ "httpGet": {
            "path": "/drain?now=1", "port": PORT,
            "httpHeaders": [
                { "name": "X-From", "value": "hook" },
                { "name": "X-From", "value": "twice" },
                { "name": "Host", "value": "shop.example" },
            ],
        } });
        let script = "while read -r line; do\n\
            line=$(echo \"$line\" | tr -d '\\r' | tr A-Z a-z); [ -n \"$line\" ] || break\n\
            echo \"$line\" >> /shared/log\ndone\n\
            printf 'HTTP/1.1 503 Oh\\r\\nContent-Length: 0\\r\\n\\r\\n'";
        space.start(&heard(hook, script)).await?;
        space.recreate("called", "web", &["main"]).await?;
        space.wait_completed("called").await?;
        for line in [
            "get /drain?now=1 http/1.1",
            "x-from: hook",
            "x-from: twice",
            "host: shop.example",
        ] {
            space.wait_line("web", "listener", line).await?;
        }
        assert_eq!(failures(space).await?, [""; 0], "any answer is a success");
        Ok(())
    })
    .await;
}

/// The server is a pod of ours, whose certificate is of its own making. It speaks nothing but TLS, so that the same call
/// without TLS shows that this one had it.
#[tokio::test]
async fn http_get_by_https_takes_a_certificate_nobody_knows() {
    in_space("https", async |space| {
        let services: Api<Service> = Api::namespaced(space.client.clone(), NAMESPACE);
        let webhook = services.get("admission").await?.spec.unwrap_or_default();
        let address = webhook.cluster_ip.context("it has an address")?;
        let hook = |scheme: &str| {
            let call = json!({ "scheme": scheme, "host": &address, "port": 443, "path": "/bye" });
            json!({ "preStop": { "httpGet": call } })
        };
        let plan = PodPlan::new("web")
            .container("secure")
            .changed(|container| container["lifecycle"] = hook("HTTPS"))
            .container("plain")
            .changed(|container| container["lifecycle"] = hook("HTTP"));
        space.start(&plan).await?;
        space
            .recreate("called", "web", &["secure", "plain"])
            .await?;
        let request = space.wait_completed("called").await?;
        for container in ["secure", "plain"] {
            let state = state_of(&request, container).context("it is in the list")?;
            assert_eq!(state.phase, "Succeeded", "{state:?}");
        }
        // The other one was stopped, and its failure would have been told, before this one was ordered.
        let failed = wait_for("the event", PATIENCE, async || {
            let told = failures(space).await?;
            Ok(if told.is_empty() {
                Look::NotYet("none".to_owned())
            } else {
                Look::Found(told)
            })
        })
        .await?;
        let of_plain = |message: &String| message.contains("container plain failed");
        assert!(failed.iter().all(of_plain), "{failed:?}");
        Ok(())
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
        wait_for("the event", PATIENCE, async || {
            let told = failures(space).await?;
            Ok(Look::is(!told.is_empty(), "none"))
        })
        .await
    })
    .await;
}

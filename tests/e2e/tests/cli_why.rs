//! `kubectl crr why` and `kubectl crr trace`, as a user runs them.

use anyhow::{Context, Result};
use e2e::{Instance, Look, PATIENCE, PodPlan, Space, crr, in_space, wait_for, wait_for_trace};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use model::labels;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};

/// A trace that nobody has.
const NO_TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Ends once with 3, and lives after that.
const CRASH_ONCE: &str = "test -e /shared/crashed || { touch /shared/crashed; exit 3; }; \
                          trap 'exit 0' TERM; tail -f /dev/null & wait";

fn web() -> PodPlan {
    PodPlan::new("web").container("main")
}

/// What the program prints; it has to end well.
async fn told(space: &Space, arguments: &[&str]) -> Result<String> {
    let (code, output, errors) = crr(space, arguments).await?;
    assert_eq!(code, 0, "{arguments:?}: {output}{errors}");
    Ok(output)
}

async fn told_as_json(space: &Space, arguments: &[&str]) -> Result<Value> {
    let text = told(space, &[arguments, &["-o", "json"]].concat()).await?;
    serde_json::from_str(&text).context(text)
}

/// What the program says when it ends with 2.
async fn refused(space: &Space, arguments: &[&str], wanted: &str) -> Result<()> {
    let (code, output, errors) = crr(space, arguments).await?;
    assert_eq!(code, 2, "{arguments:?}: {output}{errors}");
    assert!(
        errors.contains(wanted),
        "{arguments:?}: {wanted:?} is not in {errors}"
    );
    Ok(())
}

#[tokio::test]
async fn a_requested_restart_is_told_from_a_crash() {
    in_space("whypod", async |space| {
        let plan = web().container_running("flaky", CRASH_ONCE);
        space.create_pod(&plan).await?;
        wait_for("flaky to be up again", PATIENCE, async || {
            let flaky = space.instance("web", "flaky").await?;
            let is_back = flaky.restart_count == 1 && flaky.is_ready;
            Ok(Look::is(is_back, format!("{flaky:?}")))
        })
        .await?;
        space.wait_ready("web").await?;
        space.recreate("asked", "web", &["main"]).await?;
        space.wait_completed("asked").await?;

        let story = told_as_json(space, &["why", "pod/web"]).await?;
        let containers = story["containers"].as_array().context("no containers")?;
        let of = |name: &str| containers.iter().find(|it| it["name"] == name);
        let main = of("main").context("main is missing")?;
        assert_eq!(main["restartCount"], 1, "{main}");
        assert_eq!(main["lastEnd"]["request"], "asked", "{main}");
        let restart = &main["requestedRestarts"][0];
        assert_eq!(restart["request"], "asked", "{main}");
        assert!(restart["requestedBy"].is_string(), "{main}");
        let flaky = of("flaky").context("flaky is missing")?;
        assert_eq!(flaky["restartCount"], 1, "{flaky}");
        assert_eq!(flaky["lastEnd"]["exitCode"], 3, "{flaky}");
        assert_eq!(flaky["lastEnd"]["request"], Value::Null, "{flaky}");
        assert_eq!(flaky["requestedRestarts"], json!([]), "{flaky}");
        assert_eq!(story["requests"][0]["name"], "asked", "{story}");

        let text = told(space, &["why", "web"]).await?;
        for words in [
            "exit code 0; requested by crr/asked",
            "exit code 3; not by a known request",
            "event Killing of main: Stopping container main by ContainerRecreateRequest asked, requested by ",
            "crr/asked event Recreated: ",
        ] {
            assert!(text.contains(words), "{words:?} is not in\n{text}");
        }

        // Of a request that was deleted, its event on the pod still tells.
        told_after_deletion(space).await
    })
    .await;
}

async fn told_after_deletion(space: &Space) -> Result<()> {
    let requests = space.requests();
    requests.delete("asked", &DeleteParams::default()).await?;
    wait_for("the request to be gone", PATIENCE, async || {
        let request = requests.get_opt("asked").await?;
        Ok(Look::is(request.is_none(), "it is there"))
    })
    .await?;
    let text = told(space, &["why", "pod/web"]).await?;
    let words = "restarts 1, known to be requested 1";
    assert_eq!(text.matches(words).count(), 1, "{text}");
    assert!(!text.contains("Requests:"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_pod_held_not_ready_names_its_holder() {
    in_space("whygate", async |space| {
        let gates = json!([{ "conditionType": labels::KRUISE_POD_READY }]);
        space.start(&web().with("readinessGates", gates)).await?;
        let mut spec = e2e::spec("web", &["main"]);
        spec["strategy"] = json!({ "unreadyGracePeriodSeconds": 600 });
        space.request("drained", spec).await?;
        let holder = format!("held by ContainerRecreateRequest {}/drained", space.name);
        wait_for("the holder to be told", PATIENCE, async || {
            let text = told(space, &["why", "pod/web"]).await?;
            Ok(Look::is(text.contains(&holder), text))
        })
        .await?;
        let story = told_as_json(space, &["why", "web"]).await?;
        assert_eq!(story["requests"][0]["active"], true, "{story}");
        let key = &story["shutGate"]["heldBy"][0]["key"];
        assert_eq!(*key, format!("{}/drained", space.name), "{story}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_bare_name_is_a_request_then_a_pod_then_nothing() {
    in_space("whyname", async |space| {
        let pod = space.start(&web()).await?;
        assert!(told(space, &["why", "web"]).await?.starts_with("pod web: "));
        space.recreate("web", "web", &["main"]).await?;
        space.wait_completed("web").await?;
        let main = Instance::of(&pod, "main")?;
        assert_eq!(main.restart_count, 0);
        for subject in ["web", "crr/web"] {
            let text = told(space, &["why", subject]).await?;
            assert!(
                text.starts_with("web: restarts containers of pod web"),
                "{text}"
            );
        }
        let text = told(space, &["why", "pod/web"]).await?;
        assert!(text.starts_with("pod web: Running"), "{text}");
        let story = told_as_json(space, &["why", "web"]).await?;
        assert_eq!(story["request"]["result"], "Succeeded", "{story}");

        let neither = format!(
            "there is neither a request nor a pod none in namespace {}",
            space.name
        );
        refused(space, &["why", "none"], &neither).await?;
        refused(space, &["why", "pod/none"], "pods \"none\" not found").await?;
        refused(space, &["why", "crr/none"], "\"none\" not found").await?;
        refused(
            space,
            &["why", "deploy/web"],
            "must be NAME, crr/NAME or pod/NAME",
        )
        .await?;
        refused(space, &["trace", "none"], "\"none\" not found").await?;
        refused(space, &["trace", "pod/web"], "must be NAME or crr/NAME").await
    })
    .await;
}

#[tokio::test]
async fn a_request_shows_its_trace() {
    in_space("trace2", async |space| {
        space.start(&web()).await?;
        space.recreate("traced", "web", &["main"]).await?;
        let request = space.wait_completed("traced").await?;
        let wanted = ["recreate", "order", "cri StopContainer"];
        let trace = wait_for_trace(&space.client, &request, &wanted).await?;
        let text = told(space, &["trace", "crr/traced"]).await?;
        for words in ["admission", "crr-scheduler", "  cri StopContainer", " ms"] {
            assert!(text.contains(words), "{words:?} is not in\n{text}");
        }
        let answer = told_as_json(space, &["trace", "traced"]).await?;
        assert_eq!(answer["data"][0]["traceID"], trace.id);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn why_there_is_no_trace_is_told() {
    in_space("notrace", async |space| {
        space.start(&web()).await?;
        space.recreate("traced", "web", &["main"]).await?;
        space.wait_completed("traced").await?;
        let away = "cannot be reached: ";
        let nobody = ["trace", "traced", "--jaeger", "http://127.0.0.1:1"];
        refused(space, &nobody, away).await?;
        let service = format!("{}/jaeger:query", space.name);
        let elsewhere = ["trace", "traced", "--jaeger-service", &service];
        refused(space, &elsewhere, "services \"jaeger\" not found").await?;
        let no_place = ["trace", "traced", "--jaeger", "localhost"];
        refused(space, &no_place, "--jaeger").await?;

        let unsampled = format!("00-{NO_TRACE}-b7ad6b7169203331-00");
        let unknown = format!("00-{NO_TRACE}-b7ad6b7169203331-01");
        for (traceparent, words) in [
            (json!(unsampled), "was not sampled"),
            (json!(unknown), "spans have not arrived yet"),
            (json!("soon"), "a W3C traceparent such as"),
            (Value::Null, "it lacks the annotation"),
        ] {
            write_trace(space, &traceparent).await?;
            refused(space, &["trace", "traced"], words).await?;
        }
        Ok(())
    })
    .await;
}

async fn write_trace(space: &Space, traceparent: &Value) -> Result<()> {
    let annotations = json!({ labels::TRACE_PARENT: traceparent });
    let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
    let parameters = PatchParams::default();
    let requests = space.requests();
    let written = requests.patch("traced", &parameters, &patch).await;
    written.map(drop).context("failed to annotate")
}

#[tokio::test]
async fn a_jaeger_at_a_url_is_asked_once() {
    in_space("jaegerurl", async |space| {
        space.start(&web()).await?;
        let request = space.recreate("traced", "web", &["main"]).await?;
        let traceparent = request.annotations().get(labels::TRACE_PARENT);
        let id = traceparent.and_then(|text| text.split('-').nth(1));
        let id = id.context("no trace")?;
        let span = json!({
            "spanID": "a", "operationName": "review", "startTime": 1, "duration": 1500, "processID": "p",
        });
        let processes = json!({ "p": { "serviceName": "elsewhere" } });
        let answer = json!({ "data": [{ "spans": [span], "processes": processes }] }).to_string();

        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}/query", listener.local_addr()?);
        let shown = ["trace", "traced", "--jaeger", &url];
        let (asked, text) = tokio::try_join!(
            answer_once(&listener, "200 OK", &answer),
            told(space, &shown)
        )?;
        assert_eq!(asked, format!("GET /query/api/traces/{id} HTTP/1.1"));
        assert!(text.contains("1.5 ms  elsewhere      review"), "{text}");

        // "Unavailable" is an answer; asking again would hang, for nobody answers a second time.
        let (_, ()) = tokio::try_join!(
            answer_once(&listener, "503 Service Unavailable", "later"),
            refused(space, &shown, "cannot be reached: HTTP 503")
        )?;
        Ok(())
    })
    .await;
}

/// Answers one request, and gives its first line.
async fn answer_once(listener: &TcpListener, status: &str, body: &str) -> Result<String> {
    let (stream, _) = listener.accept().await?;
    let mut stream = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    head.into_iter().next().context("nothing was asked")
}

//! The examples of the pages in docs/, as they stand: who copies them gets what the page says.

use std::{path::Path, process::Stdio};

use anyhow::{Context, Result, bail, ensure};
use e2e::{
    Space, in_space, kubectl,
    page::{Action, is_as_expected, parse_examples},
};
use tokio::process::Command;

#[tokio::test]
async fn the_page_about_requests_says_what_is() {
    says_what_is("docs-crr", include_str!("../../../docs/crr.md"), 9).await;
}

#[tokio::test]
async fn the_page_about_launch_priority_says_what_is() {
    let page = include_str!("../../../docs/launch-priority.md");
    says_what_is("docs-launch", page, 2).await;
}

async fn says_what_is(case: &str, page: &str, at_least: usize) {
    in_space(case, async |space| {
        let examples = parse_examples(page)?;
        ensure!(examples.len() >= at_least, "the page has examples");
        let folder = tempfile::tempdir()?;
        let config = folder.path().join("kubeconfig");
        write_config(space, &config).await?;
        for example in examples {
            let line = example.line;
            let end = match &example.action {
                Action::Apply(manifest) => {
                    let apply = ["-n", &space.name, "apply", "-f", "-"];
                    kubectl(&apply, manifest).await.map(drop)
                }
                Action::Run { script, output } => run(&config, script, output.as_deref()).await,
            };
            end.with_context(|| format!("the example of line {line}"))?;
        }
        Ok(())
    })
    .await;
}

/// The cluster's configuration with the space as its namespace: a reader's kubectl has one too.
async fn write_config(space: &Space, path: &Path) -> Result<()> {
    let config = kubectl(&["config", "view", "--raw", "--flatten"], "").await?;
    tokio::fs::write(path, config).await?;
    let namespace = format!("--namespace={}", space.name);
    let path = format!("--kubeconfig={}", path.display());
    let set = [&path, "config", "set-context", "--current", &namespace];
    kubectl(&set, "").await.map(drop)
}

async fn run(config: &Path, script: &str, expected: Option<&str>) -> Result<()> {
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .env("KUBECONFIG", config)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("failed to start bash")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("{}{printed}", String::from_utf8_lossy(&output.stderr));
    }
    let is_so = expected.is_none_or(|expected| is_as_expected(expected, &printed));
    ensure!(
        is_so,
        "the page says\n{}it printed\n{printed}",
        expected.unwrap_or_default()
    );
    Ok(())
}

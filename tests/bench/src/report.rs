//! The figures as a table for people and as JSON for comparison.

use std::{collections::BTreeMap, io::Write, path::PathBuf, process::Command, time::Duration};

use anyhow::{Context, Result};
use cluster::Folders;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{audit::Kind, figures::Figures};

/// All that was measured.
pub(crate) struct Report {
    pub(crate) began_at: Timestamp,
    pub(crate) until_completed: Vec<Duration>,
    pub(crate) until_stop: Vec<Duration>,
    /// Of all requests together; none where the audit log is out of reach.
    pub(crate) api_requests: Option<BTreeMap<Kind, usize>>,
    /// Resident kilobytes; empty where the services run elsewhere.
    pub(crate) memory: BTreeMap<&'static str, Vec<u64>>,
}

// === impl Report ===

impl Report {
    pub(crate) fn print(&self) {
        let mut lines = vec![
            format!(
                "{} fresh pods, one after the other, one container each",
                self.until_completed.len()
            ),
            String::new(),
            format!(
                "{:<42} {:>8} {:>8} {:>8} {:>8}",
                "seconds", "p50", "p90", "p99", "max"
            ),
            row(
                "create → Completed (this program's clock)",
                &self.until_completed,
            ),
            row("create → StopContainer (and the node's)", &self.until_stop),
        ];
        if let Some(requests) = &self.api_requests {
            lines.push(String::new());
            lines.push(format!(
                "{:<56} {:>10} {:>10}",
                "API requests (audit log)", "all", "each"
            ));
            for ((service, verb, resource), count) in requests {
                let each = ratio(*count, self.until_completed.len());
                let what = format!("{service:<14} {verb:<7} {resource}");
                lines.push(format!("{what:<56} {count:>10} {each:>10.2}"));
            }
        }
        if !self.memory.is_empty() {
            lines.push(String::new());
            lines.push("resident memory, MiB of each process (/proc)".to_owned());
            for (service, sizes) in &self.memory {
                let each: Vec<_> = sizes
                    .iter()
                    .map(|size| format!("{}.{}", size / 1024, size % 1024 * 10 / 1024))
                    .collect();
                lines.push(format!("{service:<14} {}", each.join("  ")));
            }
        }
        let text = lines.join("\n");
        // Whoever reads may have gone: that is no failure.
        drop(writeln!(std::io::stdout(), "{text}"));
    }

    /// Writes the raw figures, and gives where.
    pub(crate) fn keep(&self) -> Result<PathBuf> {
        let folder = Folders::from_environment()?.bench();
        std::fs::create_dir_all(&folder).context("failed to make the folder of the figures")?;
        let path = folder.join(format!(
            "crr-{}.json",
            self.began_at.strftime("%Y%m%dT%H%M%SZ")
        ));
        std::fs::write(&path, serde_json::to_vec_pretty(&self.json())?)
            .with_context(|| format!("failed to write {}", path.display()))?;
        Ok(path)
    }

    fn json(&self) -> Value {
        let requests = self.api_requests.iter().flatten();
        let requests: Vec<_> = requests
            .map(|((service, verb, resource), count)| {
                json!({ "client": service, "verb": verb, "resource": resource, "count": count })
            })
            .collect();
        json!({
            "what": "crr",
            "began_at": self.began_at.to_string(),
            "commit": commit(),
            "count": self.until_completed.len(),
            "create_to_completed_seconds": seconds(&self.until_completed),
            "create_to_stop_container_seconds": seconds(&self.until_stop),
            "api_requests": requests,
            "resident_kilobytes": self.memory,
        })
    }
}

fn row(name: &str, durations: &[Duration]) -> String {
    let figures = Figures::of(durations.iter().copied());
    let each = [50, 90, 99, 100].map(|percent| {
        let seconds = figures.percentile(percent).as_secs_f64();
        format!("{seconds:>8.3}")
    });
    format!("{name:<42} {}", each.join(" "))
}

fn seconds(durations: &[Duration]) -> Vec<f64> {
    durations.iter().map(Duration::as_secs_f64).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts of requests are small")]
fn ratio(count: usize, of: usize) -> f64 {
    count as f64 / of.max(1) as f64
}

/// The checkout's commit, with a mark when something in it was changed; nothing outside of a checkout.
fn commit() -> Option<String> {
    let words = [
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    ];
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

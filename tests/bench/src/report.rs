//! The figures as a table for people and as JSON for comparison.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    path::PathBuf,
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result};
use cluster::Folders;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    audit::Kind,
    figures::Figures,
    goals::{Goal, goals},
    many::Many,
    measured::{Measured, is_of_a_request},
};

/// What a measurement gave.
pub(crate) struct Report {
    /// What was measured: begins the file's name.
    pub(crate) what: &'static str,
    pub(crate) began_at: Timestamp,
    /// Tables of lines, each with its head; one without more than the head is left out.
    pub(crate) tables: Vec<Vec<String>>,
    pub(crate) raw: Value,
}

// === impl Report ===

impl Report {
    pub(crate) fn print(&self) {
        let tables = self.tables.iter().filter(|lines| lines.len() > 1);
        let text: Vec<_> = tables.map(|lines| lines.join("\n")).collect();
        // Whoever reads may have gone: that is no failure.
        drop(writeln!(std::io::stdout(), "{}", text.join("\n\n")));
    }

    /// Writes the raw figures, and gives where.
    pub(crate) fn keep(&self) -> Result<PathBuf> {
        let folder = Folders::from_environment()?.bench();
        std::fs::create_dir_all(&folder).context("failed to make the folder of the figures")?;
        let began_at = self.began_at.strftime("%Y%m%dT%H%M%SZ");
        let path = folder.join(format!("{}-{began_at}.json", self.what));
        let mut raw = self.raw.clone();
        raw["what"] = json!(self.what);
        raw["began_at"] = json!(self.began_at.to_string());
        raw["commit"] = json!(commit());
        std::fs::write(&path, serde_json::to_vec_pretty(&raw)?)
            .with_context(|| format!("failed to write {}", path.display()))?;
        Ok(path)
    }
}

/// Of recreations.
pub(crate) fn of_crr(measured: &Measured) -> Report {
    Report {
        what: "crr",
        began_at: measured.began_at,
        tables: vec![
            times(measured),
            api(measured),
            memory(&measured.memory),
            aims(&goals(measured)),
        ],
        raw: raw(measured),
    }
}

/// The head of a table of times.
pub(crate) fn head() -> String {
    format!(
        "{:<48} {:>5} {:>8} {:>8} {:>8} {:>8}",
        "seconds, by this program's clock", "n", "p50", "p90", "p99", "max"
    )
}

fn times(measured: &Measured) -> Vec<String> {
    let row_of: Vec<_> = measured.row.iter().map(|(took, _)| *took).collect();
    let each = |many: &Option<Many>| {
        many.as_ref()
            .map_or_else(Vec::new, |many| many.each.clone())
    };
    let mut lines = vec![head()];
    for (name, durations) in [
        ("alone: create → Completed", &measured.until_completed),
        (
            "alone: create → StopContainer (by the node's)",
            &measured.until_stop,
        ),
        (
            "alone: ready → Completed",
            &measured.from_ready_to_completed,
        ),
        ("bare: crictl stop → ready", &measured.bare),
        ("in a row: create → Completed", &row_of),
        ("together: create → Completed", &each(&measured.together)),
        ("burst: create → Completed", &each(&measured.burst)),
    ] {
        if !durations.is_empty() {
            lines.push(row(name, durations));
        }
    }
    if !row_of.is_empty() {
        let each: Vec<_> = row_of
            .iter()
            .map(|took| format!("{:.2}", took.as_secs_f64()))
            .collect();
        lines.extend(
            each.chunks(16)
                .map(|some| format!("in a row, each: {}", some.join(" "))),
        );
    }
    if let Some(took) = measured.bare_together {
        let seconds = took.as_secs_f64();
        lines.push(format!(
            "together, bare stops: last ready after {seconds:.3} s"
        ));
    }
    for (name, many) in [("together", &measured.together), ("burst", &measured.burst)] {
        if let Some(many) = many {
            let (last, lost) = (many.until_last.as_secs_f64(), many.lost.len());
            lines.push(format!(
                "{name}: last Completed after {last:.3} s, {lost} lost"
            ));
        }
    }
    lines
}

fn api(measured: &Measured) -> Vec<String> {
    let column = |name: &str| format!(" {name:>9}");
    let columns: String = measured
        .api
        .iter()
        .map(|api| column(api.phase.name()))
        .collect();
    let mut lines = vec![format!(
        "{:<57}{columns}",
        "API requests per request (audit log)"
    )];
    let kinds: BTreeSet<_> = measured
        .api
        .iter()
        .flat_map(|api| api.counts.keys())
        .collect();
    let line = |what: &str, is_in: &dyn Fn(&Kind) -> bool| {
        let figures = measured.api.iter().map(|api| {
            let counts = api.counts.iter().filter(|(kind, _)| is_in(kind));
            format!(" {:>9.2}", api.each(counts.map(|(_, count)| count).sum()))
        });
        format!("{what:<57}{}", figures.collect::<String>())
    };
    for kind in kinds {
        let (service, verb, resource) = kind;
        let what = format!("{service:<14} {verb:<7} {resource}");
        lines.push(line(&what, &|other| other == kind));
    }
    if lines.len() > 1 {
        lines.push(line(
            "after the create, without leases and watches",
            &is_of_a_request,
        ));
    }
    lines
}

pub(crate) fn memory(resident: &BTreeMap<&'static str, Vec<u64>>) -> Vec<String> {
    let mut lines = vec!["resident memory, MiB of each process (/proc)".to_owned()];
    for (service, sizes) in resident {
        let each: Vec<_> = sizes
            .iter()
            .map(|size| format!("{}.{}", size / 1024, size % 1024 * 10 / 1024))
            .collect();
        lines.push(format!("{service:<14} {}", each.join("  ")));
    }
    lines
}

pub(crate) fn aims(goals: &[Goal]) -> Vec<String> {
    let lines = goals.iter().map(Goal::line);
    ["goals".to_owned()].into_iter().chain(lines).collect()
}

fn raw(measured: &Measured) -> Value {
    let api = measured.api.iter().flat_map(|api| {
        api.counts.iter().map(|((service, verb, resource), count)| {
            json!({
                "phase": api.phase.name(), "requests": api.requests,
                "client": service, "verb": verb, "resource": resource, "count": count,
            })
        })
    });
    let row = measured.row.iter().map(|(took, stop)| {
        json!({ "create_to_completed_seconds": took.as_secs_f64(), "stop_seconds": stop.as_secs_f64() })
    });
    json!({
        "count": measured.until_completed.len(),
        "create_to_completed_seconds": seconds(&measured.until_completed),
        "create_to_stop_container_seconds": seconds(&measured.until_stop),
        "ready_to_completed_seconds": seconds(&measured.from_ready_to_completed),
        "bare_stop_to_ready_seconds": seconds(&measured.bare),
        "row": row.collect::<Vec<_>>(),
        "together": measured.together.as_ref().map(raw_many),
        "bare_together_seconds": measured.bare_together.map(|took| took.as_secs_f64()),
        "burst": measured.burst.as_ref().map(raw_many),
        "api_requests": api.collect::<Vec<_>>(),
        "resident_kilobytes": measured.memory,
        "goals": raw_goals(&goals(measured)),
    })
}

pub(crate) fn raw_goals(goals: &[Goal]) -> Value {
    let goals = goals.iter().map(|goal| {
        json!({ "goal": goal.what, "figure": goal.figure, "limit": goal.limit, "met": goal.is_met() })
    });
    goals.collect()
}

fn raw_many(many: &Many) -> Value {
    json!({
        "create_to_completed_seconds": seconds(&many.each),
        "first_create_to_last_completed_seconds": many.until_last.as_secs_f64(),
        "lost": many.lost,
    })
}

pub(crate) fn row(name: &str, durations: &[Duration]) -> String {
    let figures = Figures::of(durations.iter().copied());
    let each = [50, 90, 99, 100].map(|percent| {
        let seconds = figures.percentile(percent).as_secs_f64();
        format!("{seconds:>8.3}")
    });
    format!("{name:<48} {:>5} {}", durations.len(), each.join(" "))
}

pub(crate) fn seconds(durations: &[Duration]) -> Vec<f64> {
    durations.iter().map(Duration::as_secs_f64).collect()
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

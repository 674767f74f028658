//! Standard output: lines, objects in the format of `-o`, and the table of `list`.

use std::io::{self, Write};

use jiff::Timestamp;
use k8s_api::crd::ContainerRecreateRequest as Crr;
use kube::ResourceExt;
use serde::Serialize;

use crate::{
    args::{DryRun, Format},
    failure::Result,
    outcome::{outcome, phase},
};

pub(crate) fn say(line: &str) -> Result<()> {
    Ok(writeln!(io::stdout(), "{line}")?)
}

/// Kind and name of a request, as kubectl accepts and prints them.
pub(crate) fn kind_and_name(request: &Crr) -> String {
    let name = request.name_any();
    format!("containerrecreaterequest.apps.kruise.io/{name}")
}

/// The line about a request that was made, in kubectl's words.
pub(crate) fn made(request: &Crr, dry_run: Option<DryRun>) -> String {
    let made = match dry_run {
        None => "created",
        Some(DryRun::Client) => "created (dry run)",
        Some(DryRun::Server) => "created (server dry run)",
    };
    format!("{} {made}", kind_and_name(request))
}

pub(crate) fn print(request: &Crr, format: Format) -> Result<()> {
    match format {
        Format::Name => say(&kind_and_name(request)),
        Format::Json => print_json(request),
        Format::Yaml => print_yaml(request),
    }
}

pub(crate) fn print_all(requests: &[Crr], format: Format) -> Result<()> {
    let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": requests });
    match format {
        Format::Name => requests.iter().try_for_each(|it| print(it, format)),
        Format::Json => print_json(&list),
        Format::Yaml => print_yaml(&list),
    }
}

pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    say(&serde_json::to_string_pretty(value).map_err(io::Error::other)?)
}

fn print_yaml(value: &impl Serialize) -> Result<()> {
    let text = serde_yaml_ng::to_string(value).map_err(io::Error::other)?;
    say(text.trim_end())
}

/// Lines with columns as wide as their widest cell, three spaces apart.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| format!("{cell:<width$}   "));
        format!("{}\n", cells.collect::<String>().trim_end())
    };
    rows.iter().map(line).collect()
}

/// Heads and rows, the newest request last.
pub(crate) fn rows(requests: &[Crr], with_namespace: bool, now: Timestamp) -> Vec<Vec<String>> {
    let mut requests: Vec<_> = requests.iter().collect();
    requests.sort_by_key(|request| request.creation_timestamp().map(|time| time.0));
    let rows = requests.into_iter().map(|request| row(request, now));
    let heads = "NAMESPACE NAME PHASE RESULT POD CONTAINERS AGE".split(' ');
    let all = [heads.map(str::to_owned).collect()].into_iter().chain(rows);
    let first = usize::from(!with_namespace);
    all.map(|row: Vec<_>| row[first..].to_vec()).collect()
}

fn row(request: &Crr, now: Timestamp) -> Vec<String> {
    let containers = request.spec.containers.iter();
    let names: Vec<_> = containers.map(|it| it.name.as_str()).collect();
    let outcome = outcome(request).map(|outcome| format!("{outcome:?}"));
    let age = request.creation_timestamp().map(|time| age(time.0, now));
    vec![
        request.namespace().unwrap_or_default(),
        request.name_any(),
        phase(request).to_owned(),
        outcome.unwrap_or_else(|| "-".to_owned()),
        request.spec.pod_name.clone(),
        names.join(","),
        age.unwrap_or_else(|| "?".to_owned()),
    ]
}

/// An age in kubectl's form: `45s`, `5m10s`, `3h`, `2d`.
fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 if seconds % 60 > 0 => format!("{}m{}s", seconds / 60, seconds % 60),
        120..10_800 => format!("{}m", seconds / 60),
        10_800..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_kubectls() {
        let cases = [
            (5, "5s"),
            (119, "119s"),
            (310, "5m10s"),
            (300, "5m"),
            (3_700, "61m"),
            (11_000, "3h"),
            (200_000, "2d"),
            (-4, "0s"),
        ];
        for (seconds, words) in cases {
            let now = Timestamp::from_second(1_000_000 + seconds).unwrap();
            assert_eq!(age(Timestamp::from_second(1_000_000).unwrap(), now), words);
        }
    }

    #[test]
    fn columns_fit_their_widest_cell() {
        let rows =
            [["NAME", "AGE"], ["web-abc123", "5s"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), "NAME         AGE\nweb-abc123   5s\n");
    }
}

//! Tables as kubectl prints them, and the rows of `list`.

use jiff::Timestamp;
use k8s_api::crd::ContainerRecreateRequest;
use kube::ResourceExt;

use crate::outcome::{Outcome, outcome, phase};

/// Columns that are as wide as they must be, three spaces apart.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let line: String = cells
            .map(|(cell, width)| format!("{cell:<width$}   "))
            .collect();
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The heads and rows of `list`, the youngest last.
pub(crate) fn rows(
    requests: &[ContainerRecreateRequest],
    with_namespace: bool,
    now: Timestamp,
) -> Vec<Vec<String>> {
    let heads = [
        "NAMESPACE",
        "NAME",
        "PHASE",
        "RESULT",
        "POD",
        "CONTAINERS",
        "AGE",
    ];
    let mut requests: Vec<_> = requests.iter().collect();
    requests.sort_by_key(|request| request.creation_timestamp().map(|time| time.0));
    let heads = heads.map(str::to_owned).to_vec();
    let rows = requests.into_iter().map(|request| row(request, now));
    let all = [heads].into_iter().chain(rows);
    all.map(|row| row[usize::from(!with_namespace)..].to_vec())
        .collect()
}

fn row(request: &ContainerRecreateRequest, now: Timestamp) -> Vec<String> {
    let containers = request.spec.containers.iter();
    let names: Vec<_> = containers
        .map(|container| container.name.as_str())
        .collect();
    let result = match outcome(request) {
        Some(Outcome::Succeeded) => "Succeeded",
        Some(Outcome::Failed) => "Failed",
        None => "-",
    };
    let created = request.creation_timestamp();
    vec![
        request.namespace().unwrap_or_default(),
        request.name_any(),
        phase(request).to_owned(),
        result.to_owned(),
        request.spec.pod_name.clone(),
        names.join(","),
        created.map_or_else(|| "?".to_owned(), |time| age(time.0, now)),
    ]
}

/// As kubectl tells ages: `45s`, `5m10s`, `3h`, `2d`.
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

//! Old log files of a container.
//!
//! Owns which of them are removed together with dead instances. It touches no file.

use std::collections::BTreeSet;

/// How many instances keep their logs. The kubelet reads the restart count from the newest one's name.
const LOGS_KEPT: usize = 2;

/// The log files that no longer belong to a known instance: `<restart count>.log` and its rotations
/// `<restart count>.log.<time>[.gz]`, except those of the newest two restart counts.
pub fn logs_to_remove(names: &[String]) -> Vec<&String> {
    let counts: BTreeSet<u32> = names
        .iter()
        .filter_map(|name| restart_count(name))
        .collect();
    let Some(oldest_kept) = counts.iter().nth_back(LOGS_KEPT - 1) else {
        return Vec::new();
    };
    let is_old = |name: &&String| restart_count(name).is_some_and(|count| count < *oldest_kept);
    names.iter().filter(is_old).collect()
}

/// The restart count in the name of a log file; `None` for other files.
fn restart_count(name: &str) -> Option<u32> {
    let (count, rest) = name.split_once('.')?;
    let is_log = rest == "log" || rest.starts_with("log.");
    is_log.then(|| count.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_two_instances_keep_their_logs() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let check = |given: &[&str], expected: &[&str]| {
            let given = names(given);
            let removed: Vec<String> = logs_to_remove(&given).into_iter().cloned().collect();
            assert_eq!(removed, names(expected));
        };
        check(&[], &[]);
        check(&["0.log"], &[]);
        check(&["9.log", "10.log"], &[]);
        check(&["9.log", "10.log", "11.log"], &["9.log"]);
        let rotated = [
            "0.log",
            "0.log.20260101-000000.gz",
            "1.log",
            "2.log",
            "2.log.20260101-000000",
        ];
        check(&rotated, &["0.log", "0.log.20260101-000000.gz"]);
        check(&["x.log", "1.txt", "core", "4.log", "5.log", "-1.log"], &[]);
    }
}

//! What our services asked of the API server, from its audit log.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::Value;

/// Who asked, the verb, and the resource.
pub(crate) type Kind = (String, String, String);

/// Counts the services' requests that were received in that time. Watches count when they end.
pub(crate) fn count(log: &Path, from: Timestamp, to: Timestamp) -> Result<BTreeMap<Kind, usize>> {
    let text = std::fs::read_to_string(log)
        .with_context(|| format!("failed to read {}", log.display()))?;
    let mut counts = BTreeMap::new();
    // A last line still being written is none yet.
    for entry in text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
    {
        let entry: Value = entry;
        let received: Option<Timestamp> = entry["requestReceivedTimestamp"]
            .as_str()
            .and_then(|time| time.parse().ok());
        let is_in_time = received.is_some_and(|at| from <= at && at <= to);
        if let Some(kind) = kind(&entry).filter(|_| is_in_time) {
            *counts.entry(kind).or_default() += 1;
        }
    }
    Ok(counts)
}

fn kind(entry: &Value) -> Option<Kind> {
    let user = entry["user"]["username"].as_str()?;
    let prefix = format!("system:serviceaccount:{}:", e2e::NAMESPACE);
    let service = user.strip_prefix(&prefix)?;
    let object = &entry["objectRef"];
    let resource = object["resource"].as_str()?;
    let resource = match object["subresource"].as_str() {
        Some(part) => format!("{resource}/{part}"),
        None => resource.to_owned(),
    };
    Some((
        service.to_owned(),
        entry["verb"].as_str()?.to_owned(),
        resource,
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_our_services_count() {
        let entry = |user: &str| {
            json!({
                "user": { "username": user }, "verb": "patch",
                "objectRef": { "resource": "containerrecreaterequests", "subresource": "status" },
            })
        };
        let ours = kind(&entry(
            "system:serviceaccount:podwright-system:crr-scheduler",
        ));
        let words = ["crr-scheduler", "patch", "containerrecreaterequests/status"];
        assert_eq!(ours, Some(words.map(str::to_owned).into()));
        assert_eq!(kind(&entry("system:node:node-1")), None);
    }
}

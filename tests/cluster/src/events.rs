//! What the runtimes did, from their own event streams: so that tests count stops exactly.
//!
//! A node's stream is written down from before its kubelet starts. Events of the moments in which
//! the runtime itself is down are not seen.

use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{cluster::Cluster, node};

/// One event of a node's containerd.
#[derive(Clone, Debug, PartialEq)]
pub struct RuntimeEvent {
    /// As printed by `ctr events`: `2026-01-31 12:00:00.123456789 +0000 UTC`.
    pub time: String,
    /// For example `/tasks/start` or `/tasks/exit`.
    pub topic: String,
    pub fields: Value,
}

impl RuntimeEvent {
    /// Whether the main process of that container ended here. (Programs run by exec end with
    /// events of the same topic, under names of their own.)
    pub fn is_stop_of(&self, container: &str) -> bool {
        self.topic == "/tasks/exit"
            && self.fields["container_id"] == container
            && self.fields["id"] == container
    }

    fn parse(line: &str) -> Option<Self> {
        let (head, fields) = line.split_once(" {")?;
        let (head, topic) = head.rsplit_once(' ')?;
        let (time, _namespace) = head.rsplit_once(' ')?;
        let fields = serde_json::from_str(&format!("{{{fields}")).ok()?;
        Some(Self {
            time: time.to_owned(),
            topic: topic.to_owned(),
            fields,
        })
    }
}

impl Cluster {
    /// All events of a node's runtime so far, oldest first.
    pub fn runtime_events(&self, name: &str) -> Result<Vec<RuntimeEvent>> {
        let log = self.folders.log_of(&node::event_log(self.number(name)?));
        let content = fs::read_to_string(&log)
            .with_context(|| format!("failed to read {}", log.display()))?;
        // A last line still being written is no event yet.
        Ok(content.lines().filter_map(RuntimeEvent::parse).collect())
    }

    /// How often the container of that id was stopped or ended on a node: 0 or 1, unless something
    /// is very wrong.
    pub fn stops_of(&self, name: &str, container: &str) -> Result<usize> {
        let events = self.runtime_events(name)?;
        Ok(events
            .iter()
            .filter(|event| event.is_stop_of(container))
            .count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_are_told_from_other_ends() {
        let line = |topic: &str, id: &str| {
            format!(
                "2026-11-21 05:08:02.1 +0000 UTC k8s.io {topic} \
                 {{\"container_id\":\"abc\",\"id\":\"{id}\",\"pid\":7}}"
            )
        };
        let stop = RuntimeEvent::parse(&line("/tasks/exit", "abc")).unwrap();
        assert_eq!(stop.time, "2026-11-21 05:08:02.1 +0000 UTC");
        assert!(stop.is_stop_of("abc"));
        assert!(!stop.is_stop_of("abd"));
        assert!(
            !RuntimeEvent::parse(&line("/tasks/exit", "probe"))
                .unwrap()
                .is_stop_of("abc")
        );
        assert!(
            !RuntimeEvent::parse(&line("/tasks/start", "abc"))
                .unwrap()
                .is_stop_of("abc")
        );
        assert_eq!(
            RuntimeEvent::parse("2026-11-21 05:08:02.1 +0000 UTC k8s.io /tasks/exit {\"con"),
            None
        );
    }
}

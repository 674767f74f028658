//! What `restart` is asked for: a pod, or a workload by type and name.

use std::{fmt, str::FromStr};

/// The object whose containers are restarted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    pub(crate) name: String,
}

/// The types that `restart` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pod,
    Deployment,
    StatefulSet,
    DaemonSet,
}

/// Why a text names nothing that can be restarted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidTarget {
    #[error("allowed are POD and TYPE/NAME")]
    Name,
    #[error(
        "{0:?} is no type that can be restarted; allowed are pod (po), deployment (deploy), statefulset (sts) and daemonset (ds)"
    )]
    Kind(String),
}

/// Why a text chooses no pods; says what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must name labels, such as app=web,tier!=back")]
pub(crate) struct InvalidSelector;

/// Labels as the API server takes them, but not none: that would be every pod.
pub(crate) fn parse_selector(text: &str) -> Result<String, InvalidSelector> {
    let is_blank = text.trim().is_empty();
    (!is_blank).then(|| text.to_owned()).ok_or(InvalidSelector)
}

// === impl Target ===

impl FromStr for Target {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = match text.split_once('/') {
            Some((kind, name)) => (parse_kind(kind)?, name),
            None => (Kind::Pod, text),
        };
        if name.is_empty() || name.contains('/') {
            return Err(InvalidTarget::Name);
        }
        let name = name.to_owned();
        Ok(Self { kind, name })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Pod => "pod",
            Kind::Deployment => "deployment",
            Kind::StatefulSet => "statefulset",
            Kind::DaemonSet => "daemonset",
        };
        write!(f, "{kind}/{}", self.name)
    }
}

/// As kubectl takes types: in any case, singular, plural or short, with or without version and group.
fn parse_kind(text: &str) -> Result<Kind, InvalidTarget> {
    let word = text.to_ascii_lowercase();
    let of_apps = word.strip_suffix(".v1.apps").or(word.strip_suffix(".apps"));
    match of_apps.unwrap_or(&word) {
        "pod" | "pods" | "po" if of_apps.is_none() => Ok(Kind::Pod),
        "deployment" | "deployments" | "deploy" => Ok(Kind::Deployment),
        "statefulset" | "statefulsets" | "sts" => Ok(Kind::StatefulSet),
        "daemonset" | "daemonsets" | "ds" => Ok(Kind::DaemonSet),
        _ => Err(InvalidTarget::Kind(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_pods_and_workloads() {
        for (text, target) in [
            ("web-0", "pod/web-0"),
            ("po/web-0", "pod/web-0"),
            ("PODS/web-0", "pod/web-0"),
            ("deploy/web", "deployment/web"),
            ("Deployments/web", "deployment/web"),
            ("deployment.apps/web", "deployment/web"),
            ("deployments.v1.apps/web", "deployment/web"),
            ("sts/db", "statefulset/db"),
            ("StatefulSet.apps/db", "statefulset/db"),
            ("ds/agent", "daemonset/agent"),
        ] {
            let parsed: Target = text.parse().expect(text);
            assert_eq!(parsed.to_string(), target, "{text}");
        }
    }

    #[test]
    fn says_what_is_allowed() {
        for (text, allowed) in [
            ("", "TYPE/NAME"),
            ("deploy/", "TYPE/NAME"),
            ("deploy/a/b", "TYPE/NAME"),
            ("job/a", "statefulset (sts)"),
            ("pod.apps/a", "statefulset (sts)"),
            ("/a", "statefulset (sts)"),
        ] {
            let error = text.parse::<Target>().expect_err(text).to_string();
            assert!(error.contains(allowed), "{error}");
        }
    }
}

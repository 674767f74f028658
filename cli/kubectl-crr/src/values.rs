//! Values of the command line, as people write them. Each error says what is allowed.

use std::{fmt, str::FromStr, time::Duration};

use http::Uri;
use jiff::{SignedDuration, SpanRelativeTo, fmt::friendly::SpanParser};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidValue {
    #[error("must be a duration such as 90s, 5m, 1h or 1m30s, in whole seconds")]
    Duration,
    #[error("must be a number of pods of at least 1, or a share from 1% to 100%")]
    MaxUnavailable,
    #[error("must name labels, such as app=web,tier!=back")]
    Selector,
    #[error("allowed are POD and TYPE/NAME")]
    Target,
    #[error(
        "{0:?} is no type that can be restarted; allowed are pod (po), deployment (deploy), statefulset (sts) and daemonset (ds)"
    )]
    Kind(String),
    #[error("must be NAME, crr/NAME or pod/NAME")]
    Subject,
    #[error("must be NAME or crr/NAME")]
    Request,
    #[error("must be http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]")]
    Url,
    #[error("must be NAMESPACE/NAME:PORT, the port by its name or number")]
    Service,
}

/// How many pods may be not ready at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MaxUnavailable {
    Pods(usize),
    Percent(usize),
}

/// Object whose containers are restarted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    pub(crate) name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pod,
    Deployment,
    StatefulSet,
    DaemonSet,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Request(String),
    Pod(String),
    /// The request of that name, otherwise the pod.
    Either(String),
}

/// A Service of the cluster where Jaeger answers queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JaegerService {
    /// `NAMESPACE/NAME:PORT`
    text: String,
    /// Path at the API server, which passes requests on to the Service.
    pub(crate) proxy_path: String,
}

/// Whole seconds: a bare number, or numbers with units from the largest to the smallest.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, InvalidValue> {
    let friendly = || {
        let span = SpanParser::new().parse_span(text).ok()?;
        let days = SpanRelativeTo::days_are_24_hours();
        span.to_duration(days).ok()
    };
    let bare = text.parse().ok().map(SignedDuration::from_secs);
    // Every duration of a request is an int32 or int64 of seconds.
    let fits = |it: &SignedDuration| it.subsec_nanos() == 0 && i32::try_from(it.as_secs()).is_ok();
    let duration = bare.or_else(friendly).filter(fits);
    let duration = duration.and_then(|duration| duration.try_into().ok());
    duration.ok_or(InvalidValue::Duration)
}

/// A label selector that is not empty: an empty one would select every pod.
pub(crate) fn parse_selector(text: &str) -> Result<String, InvalidValue> {
    let is_blank = text.trim().is_empty();
    let selector = (!is_blank).then(|| text.to_owned());
    selector.ok_or(InvalidValue::Selector)
}

/// The name of a request: `web` or `crr/web`.
pub(crate) fn parse_request(text: &str) -> Result<String, InvalidValue> {
    match text.parse() {
        Ok(Subject::Request(name) | Subject::Either(name)) => Ok(name),
        Ok(Subject::Pod(_)) | Err(_) => Err(InvalidValue::Request),
    }
}

pub(crate) fn parse_url(text: &str) -> Result<Uri, InvalidValue> {
    let url: Uri = text.parse().map_err(|_| InvalidValue::Url)?;
    let is_web = matches!(url.scheme_str(), Some("http" | "https"));
    let is_plain = !text.contains(['@', '?', '#']);
    (is_web && is_plain).then_some(url).ok_or(InvalidValue::Url)
}

/// A type as kubectl takes it: in any case, singular, plural or short, with or without version and group.
fn parse_kind(text: &str) -> Result<Kind, InvalidValue> {
    let word = text.to_ascii_lowercase();
    let of_apps = word.strip_suffix(".v1.apps").or(word.strip_suffix(".apps"));
    match of_apps.unwrap_or(&word) {
        "pod" | "pods" | "po" if of_apps.is_none() => Ok(Kind::Pod),
        "deployment" | "deployments" | "deploy" => Ok(Kind::Deployment),
        "statefulset" | "statefulsets" | "sts" => Ok(Kind::StatefulSet),
        "daemonset" | "daemonsets" | "ds" => Ok(Kind::DaemonSet),
        _ => Err(InvalidValue::Kind(text.to_owned())),
    }
}

/// The type before the slash, if there is one, and the name; `None` if that is no name.
fn split_name(text: &str) -> (Option<&str>, Option<String>) {
    let (kind, name) = match text.split_once('/') {
        Some((kind, name)) => (Some(kind), name),
        None => (None, text),
    };
    let is_name = !name.is_empty() && !name.contains('/');
    (kind, is_name.then(|| name.to_owned()))
}

// === impl MaxUnavailable ===

impl MaxUnavailable {
    /// The number among `pods`: rounded down as in a Deployment, but at least 1, or no pod could begin.
    pub(crate) fn of(self, pods: usize) -> usize {
        match self {
            Self::Pods(count) => count,
            Self::Percent(percent) => (pods * percent / 100).max(1),
        }
    }
}

impl FromStr for MaxUnavailable {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_suffix('%').unwrap_or(text);
        // Rust would accept a sign.
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        match (digits.parse(), text.ends_with('%')) {
            (Ok(count @ 1..), false) if is_number => Ok(Self::Pods(count)),
            (Ok(count @ 1..=100), true) if is_number => Ok(Self::Percent(count)),
            _ => Err(InvalidValue::MaxUnavailable),
        }
    }
}

// === impl Target ===

impl FromStr for Target {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = split_name(text);
        let kind = kind.map_or(Ok(Kind::Pod), parse_kind)?;
        let name = name.ok_or(InvalidValue::Target)?;
        Ok(Self { kind, name })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = format!("{:?}", self.kind).to_lowercase();
        write!(f, "{kind}/{}", self.name)
    }
}

// === impl Subject ===

impl FromStr for Subject {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = split_name(text);
        let name = name.ok_or(InvalidValue::Subject)?;
        match kind {
            None => Ok(Self::Either(name)),
            Some("pod" | "pods" | "po") => Ok(Self::Pod(name)),
            Some(
                "crr"
                | "containerrecreaterequest"
                | "containerrecreaterequests"
                | "containerrecreaterequests.apps.kruise.io"
                | "containerrecreaterequest.apps.kruise.io", // Printed by `-o name`.
            ) => Ok(Self::Request(name)),
            Some(_) => Err(InvalidValue::Subject),
        }
    }
}

// === impl JaegerService ===

impl FromStr for JaegerService {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(namespace, rest)| Some((namespace, rest.split_once(':')?)));
        let (namespace, (name, port)) = parts.ok_or(InvalidValue::Service)?;
        let is_label = |word: &str| {
            let may = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
            !word.is_empty() && word.chars().all(may)
        };
        if ![namespace, name, port].into_iter().all(is_label) {
            return Err(InvalidValue::Service);
        }
        let text = text.to_owned();
        let proxy_path = format!("/api/v1/namespaces/{namespace}/services/{name}:{port}/proxy");
        Ok(Self { text, proxy_path })
    }
}

impl fmt::Display for JaegerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_seconds() {
        let cases = [
            ("0", Some(0)),
            ("90", Some(90)),
            ("3s", Some(3)),
            ("1m30s", Some(90)),
            ("2h", Some(7_200)),
            ("1d1s", Some(86_401)),
            ("", None),
            ("s", None),
            ("1.5s", None),
            ("500ms", None),
            ("30s1m", None),
            ("-3s", None),
            ("soon", None),
            ("99999999999", None),
            ("18446744073709551615m", None),
        ];
        for (text, seconds) in cases {
            let parsed = parse_duration(text).ok().map(|parsed| parsed.as_secs());
            assert_eq!(parsed, seconds, "{text:?}");
        }
    }

    #[test]
    fn counts_pods() {
        for (text, pods, expected) in [
            ("1", 3, 1),
            ("5", 3, 5),
            ("50%", 3, 1),
            ("50%", 4, 2),
            ("1%", 3, 1),
            ("99%", 3, 2),
            ("100%", 3, 3),
        ] {
            let amount: MaxUnavailable = text.parse().expect(text);
            assert_eq!(amount.of(pods), expected, "{text} of {pods}");
        }
    }

    #[test]
    fn refuses_all_else() {
        for text in [
            "", "0", "0%", "101%", "-1", "+1", "+1%", "%", "1.5", "a", "10%%", "1 %",
        ] {
            assert!(text.parse::<MaxUnavailable>().is_err(), "{text}");
        }
    }

    #[test]
    fn names_may_say_what_they_name() {
        let name = || "web".to_owned();
        let cases = [
            ("web", Ok(Subject::Either(name()))),
            ("crr/web", Ok(Subject::Request(name()))),
            (
                "containerrecreaterequest.apps.kruise.io/web",
                Ok(Subject::Request(name())),
            ),
            ("pod/web", Ok(Subject::Pod(name()))),
            ("pods/web", Ok(Subject::Pod(name()))),
            ("deploy/web", Err(InvalidValue::Subject)),
            ("pod/", Err(InvalidValue::Subject)),
            ("pod/web/app", Err(InvalidValue::Subject)),
            ("/web", Err(InvalidValue::Subject)),
            ("", Err(InvalidValue::Subject)),
        ];
        for (word, meant) in cases {
            assert_eq!(word.parse::<Subject>(), meant, "{word:?}");
        }
    }

    #[test]
    fn a_pod_is_no_request() {
        assert_eq!(parse_request("crr/web"), Ok("web".to_owned()));
        assert_eq!(parse_request("web"), Ok("web".to_owned()));
        assert_eq!(parse_request("pod/web"), Err(InvalidValue::Request));
    }

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

    #[test]
    fn a_url_is_a_base() {
        for text in [
            "http://localhost:16686",
            "https://jaeger.example/query",
            "http://[::1]:1/",
        ] {
            assert!(parse_url(text).is_ok(), "{text}");
        }
        for text in [
            "",
            "localhost:16686",
            "/api",
            "ftp://a",
            "http://a/?b",
            "http://u:p@a/",
            "http://",
        ] {
            assert_eq!(parse_url(text), Err(InvalidValue::Url), "{text}");
        }
    }

    #[test]
    fn a_service_is_named_with_its_port() {
        let service: JaegerService = "podwright-system/jaeger:query".parse().unwrap();
        assert_eq!(service.to_string(), "podwright-system/jaeger:query");
        let path = "/api/v1/namespaces/podwright-system/services/jaeger:query/proxy";
        assert_eq!(service.proxy_path, path);
        for text in [
            "", "jaeger", "a/jaeger", "jaeger:1", "a/b:", "/b:1", "a/b:1/x", "a/../b:1", "a/b?:1",
        ] {
            assert_eq!(text.parse::<JaegerService>(), Err(InvalidValue::Service));
        }
    }
}

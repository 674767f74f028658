//! Where Jaeger's query service is, and what its answers mean.
//!
//! Nothing is asked here: `cluster` does that.

use std::{fmt, str::FromStr};

use http::Uri;
use kube::core::Status;
use serde_json::Value;
use trace_tree::Trace;

/// A Service of the cluster that Jaeger answers queries at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JaegerService {
    namespace: String,
    name: String,
    /// The port's name or number.
    port: String,
}

/// A place where Jaeger cannot be; says what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidPlace {
    #[error("must be http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]")]
    Url,
    #[error("must be NAMESPACE/NAME:PORT, the port by its name or number")]
    Service,
}

/// What an answer to the question for a trace means.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Trace(Value),
    /// Jaeger is there, the trace is not.
    NoSuchTrace,
    /// It is not Jaeger that answered; says who, or what was said.
    NotJaeger(String),
}

/// A base URL of Jaeger's query service.
pub(crate) fn parse_url(text: &str) -> Result<Uri, InvalidPlace> {
    let url: Uri = text.parse().map_err(|_| InvalidPlace::Url)?;
    let is_web = matches!(url.scheme_str(), Some("http" | "https"));
    let is_plain = !text.contains(['@', '?', '#']);
    (is_web && is_plain).then_some(url).ok_or(InvalidPlace::Url)
}

/// The meaning of a status code and a body.
pub(crate) fn read_answer(code: u16, body: &str) -> Answer {
    let json: Option<Value> = serde_json::from_str(body).ok();
    let Some(json) = json.filter(Value::is_object) else {
        return Answer::NotJaeger(format!("HTTP {code}, and not Jaeger's JSON"));
    };
    if json["kind"] == "Status" {
        let status: Status = serde_json::from_value(json).unwrap_or_default();
        return Answer::NotJaeger(status.message);
    }
    let has_spans = Trace::read("", &json).is_some();
    match code {
        200 if has_spans => Answer::Trace(json),
        200 if json.get("data").is_some() => Answer::NoSuchTrace,
        404 if json.get("errors").is_some() => Answer::NoSuchTrace,
        _ => Answer::NotJaeger(match json["errors"][0]["msg"].as_str() {
            Some(said) => format!("HTTP {code}: {said}"),
            None => format!("HTTP {code}, and not Jaeger's JSON"),
        }),
    }
}

// === impl JaegerService ===

impl JaegerService {
    /// Its path at the API server, which passes requests on to it.
    pub(crate) fn proxy_path(&self) -> String {
        let Self {
            namespace,
            name,
            port,
        } = self;
        format!("/api/v1/namespaces/{namespace}/services/{name}:{port}/proxy")
    }
}

impl FromStr for JaegerService {
    type Err = InvalidPlace;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (namespace, rest) = text.split_once('/').ok_or(InvalidPlace::Service)?;
        let (name, port) = rest.split_once(':').ok_or(InvalidPlace::Service)?;
        let is_word = |word: &str| {
            let may = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
            !word.is_empty() && word.chars().all(may)
        };
        let is_allowed = [namespace, name, port].into_iter().all(is_word);
        is_allowed
            .then(|| Self {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                port: port.to_owned(),
            })
            .ok_or(InvalidPlace::Service)
    }
}

impl fmt::Display for JaegerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:{}", self.namespace, self.name, self.port)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
            assert_eq!(parse_url(text), Err(InvalidPlace::Url), "{text}");
        }
    }

    #[test]
    fn a_service_is_named_with_its_port() {
        let service: JaegerService = "podwright-system/jaeger:query".parse().unwrap();
        assert_eq!(service.to_string(), "podwright-system/jaeger:query");
        let path = "/api/v1/namespaces/podwright-system/services/jaeger:query/proxy";
        assert_eq!(service.proxy_path(), path);
        for text in [
            "", "jaeger", "a/jaeger", "jaeger:1", "a/b:", "/b:1", "a/b:1/x", "a/../b:1", "a/b?:1",
        ] {
            assert_eq!(text.parse::<JaegerService>(), Err(InvalidPlace::Service));
        }
    }

    #[test]
    fn answers_are_told_apart() {
        let trace = json!({ "data": [{ "spans": [{}] }], "errors": null });
        let missing =
            json!({ "data": null, "errors": [{ "code": 404, "msg": "trace not found" }] });
        let broken = json!({ "data": null, "errors": [{ "code": 500, "msg": "storage is away" }] });
        let status =
            json!({ "kind": "Status", "message": "services \"jaeger\" not found", "code": 404 });
        let not_jaeger = |words: &str| Answer::NotJaeger(words.to_owned());
        let cases = [
            (200, trace.to_string(), Answer::Trace(trace)),
            (200, json!({ "data": [] }).to_string(), Answer::NoSuchTrace),
            (404, missing.to_string(), Answer::NoSuchTrace),
            (
                404,
                status.to_string(),
                not_jaeger("services \"jaeger\" not found"),
            ),
            (
                500,
                broken.to_string(),
                not_jaeger("HTTP 500: storage is away"),
            ),
            (
                404,
                "<html>".to_owned(),
                not_jaeger("HTTP 404, and not Jaeger's JSON"),
            ),
            (
                200,
                "{}".to_owned(),
                not_jaeger("HTTP 200, and not Jaeger's JSON"),
            ),
        ];
        for (code, body, meant) in cases {
            assert_eq!(read_answer(code, &body), meant, "{code} {body}");
        }
    }
}

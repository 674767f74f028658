//! What a command is about, as people name it: `web`, `crr/web-3f9a1c`, `pod/web`.

use std::str::FromStr;

/// How requests are named before the slash; the last is what `-o name` prints.
const REQUEST_KINDS: [&str; 5] = [
    "crr",
    "containerrecreaterequest",
    "containerrecreaterequests",
    "containerrecreaterequests.apps.kruise.io",
    "containerrecreaterequest.apps.kruise.io",
];

const POD_KINDS: [&str; 3] = ["pod", "pods", "po"];

/// What is to be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Request(String),
    Pod(String),
    /// The request of that name, otherwise the pod.
    Either(String),
}

/// A text that names nothing; says what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidSubject {
    #[error("must be NAME, crr/NAME or pod/NAME")]
    Subject,
    #[error("must be NAME or crr/NAME")]
    Request,
}

// === impl Subject ===

impl FromStr for Subject {
    type Err = InvalidSubject;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let (kind, name) = match word.split_once('/') {
            Some((kind, name)) => (Some(kind), name),
            None => (None, word),
        };
        if name.is_empty() || name.contains('/') {
            return Err(InvalidSubject::Subject);
        }
        let name = name.to_owned();
        match kind {
            None => Ok(Self::Either(name)),
            Some(kind) if REQUEST_KINDS.contains(&kind) => Ok(Self::Request(name)),
            Some(kind) if POD_KINDS.contains(&kind) => Ok(Self::Pod(name)),
            Some(_) => Err(InvalidSubject::Subject),
        }
    }
}

/// The name of a request, where nothing but a request will do.
pub(crate) fn parse_request(word: &str) -> Result<String, InvalidSubject> {
    match word.parse() {
        Ok(Subject::Request(name) | Subject::Either(name)) => Ok(name),
        Ok(Subject::Pod(_)) | Err(_) => Err(InvalidSubject::Request),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("deploy/web", Err(InvalidSubject::Subject)),
            ("pod/", Err(InvalidSubject::Subject)),
            ("pod/web/app", Err(InvalidSubject::Subject)),
            ("/web", Err(InvalidSubject::Subject)),
            ("", Err(InvalidSubject::Subject)),
        ];
        for (word, meant) in cases {
            assert_eq!(word.parse::<Subject>(), meant, "{word:?}");
        }
    }

    #[test]
    fn a_pod_is_no_request() {
        assert_eq!(parse_request("crr/web"), Ok("web".to_owned()));
        assert_eq!(parse_request("web"), Ok("web".to_owned()));
        assert_eq!(parse_request("pod/web"), Err(InvalidSubject::Request));
    }
}

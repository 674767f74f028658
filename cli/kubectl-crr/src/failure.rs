//! What can go wrong, and the exit codes.

use std::{fmt, io, process::ExitCode};

use kube::core::Status;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked for is done, or begun where nobody waits.
    Done = 0,
    /// A restart failed.
    Failed = 1,
    /// The command makes no sense, or the cluster refused it or cannot be reached.
    Refused = 2,
    /// The time to wait is over; the restarts go on.
    Timeout = 3,
    /// Ctrl-C while waiting; the restarts go on.
    Interrupted = 130,
}

/// Why there is nothing to wait for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line; says the flag and what is allowed.
    Usage(String),
    /// The server's answer to that request.
    Api { doing: String, status: Box<Status> },
    /// The server's answer to a watch that will be no other the next time; says what it takes.
    Denied { needs: String, status: Box<Status> },
    /// The server could not be asked.
    Unreachable { doing: String, error: String },
    /// What was asked about is not there; says what was looked for.
    Missing(String),
    /// Standard output is closed.
    Output(io::Error),
}

// === impl Exit ===

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

// === impl Failure ===

impl Failure {
    /// What became of a request to the API server.
    pub(crate) fn new(doing: impl Into<String>, error: kube::Error) -> Self {
        let doing = doing.into();
        match error {
            kube::Error::Api(status) => Self::Api { doing, status },
            error => Self::unreachable(doing, &error),
        }
    }

    pub(crate) fn unreachable(doing: impl Into<String>, error: &dyn std::error::Error) -> Self {
        Self::Unreachable {
            doing: doing.into(),
            error: chain(error),
        }
    }

    /// What it says, without line breaks.
    pub(crate) fn in_one_line(&self) -> String {
        let text = self.to_string();
        let mut lines = text.lines().map(str::trim);
        let what = lines.next().unwrap_or_default();
        let faults: Vec<_> = lines.collect();
        if faults.is_empty() {
            return what.to_owned();
        }
        format!("{what}: {}", faults.join("; "))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(problem) | Self::Missing(problem) => f.write_str(problem),
            Self::Api { doing, status } => {
                write!(f, "{doing} was refused")?;
                faults(&status.message)
                    .iter()
                    .try_for_each(|fault| write!(f, "\n  {fault}"))
            }
            Self::Denied { needs, status } => {
                match status.code {
                    401 => write!(f, "the cluster does not know who asks for {needs}")?,
                    403 => write!(f, "missing rights: this needs {needs}")?,
                    404 => write!(f, "{needs}: no such resource here; is Podwright installed?")?,
                    _ => write!(f, "{needs} was refused")?,
                }
                faults(&status.message)
                    .iter()
                    .try_for_each(|fault| write!(f, "\n  {fault}"))
            }
            Self::Unreachable { doing, error } => write!(f, "{doing} failed: {error}"),
            Self::Output(error) => write!(f, "cannot write to standard output: {error}"),
        }
    }
}

/// The faults of a refusal, without the API server's introduction of the webhook that found them.
fn faults(message: &str) -> Vec<&str> {
    let said = match message.split_once("denied the request: ") {
        Some((_, said)) => said,
        None => message,
    };
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect()
}

/// An error and its sources, each said once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_that_is_denied_says_what_it_needs() {
        for (code, told) in [
            (
                401,
                "the cluster does not know who asks for list and watch on pods",
            ),
            (403, "missing rights: this needs list and watch on pods"),
            (
                404,
                "list and watch on pods: no such resource here; is Podwright installed?",
            ),
            (400, "list and watch on pods was refused"),
        ] {
            let status = Status::failure("no", "Because").with_code(code).boxed();
            let needs = "list and watch on pods".to_owned();
            let failure = Failure::Denied { needs, status };
            assert_eq!(failure.to_string(), format!("{told}\n  no"));
        }
    }

    #[test]
    fn a_refusal_has_one_fault_a_line() {
        let status = Status::failure(
            "admission webhook \"crr.podwright.dev\" denied the request: spec.podName: no pod web\nspec.containers: empty",
            "BadRequest",
        );
        let failure = Failure::Api {
            doing: "creating x".to_owned(),
            status: status.boxed(),
        };
        let told = "creating x was refused\n  spec.podName: no pod web\n  spec.containers: empty";
        assert_eq!(failure.to_string(), told);
        let told = "creating x was refused: spec.podName: no pod web; spec.containers: empty";
        assert_eq!(failure.in_one_line(), told);
        let plain = Status::failure("pods \"web\" not found", "NotFound");
        let failure = Failure::Api {
            doing: "reading pod web".to_owned(),
            status: plain.boxed(),
        };
        let told = "reading pod web was refused\n  pods \"web\" not found";
        assert_eq!(failure.to_string(), told);
    }
}

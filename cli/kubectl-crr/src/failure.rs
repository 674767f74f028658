//! Errors as they are printed, and exit codes.

use std::{error::Error, fmt::Display, io, process::ExitCode};

use kube::core::Status;
use model::error_chain::ErrorChain;

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// The program's exit code; the help in `args.rs` explains each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    Refused = 2,
    Timeout = 3,
    Interrupted = 130,
}

/// Why a command cannot go on. All failures end the program alike, so only the message is kept.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failure(pub(crate) String);

// === impl Exit ===

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

// === impl Failure ===

impl Failure {
    /// A request to the API server that was refused or got no answer.
    pub(crate) fn new(doing: impl Display, error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::refused(format!("{doing} was refused"), status),
            error => no_answer(doing, error),
        }
    }

    /// A watch that is refused the next time, too; `needs` are the rights that it takes.
    pub(crate) fn denied(needs: &str, status: &Status) -> Self {
        let problem = match status.code {
            401 => format!("the cluster does not know who asks for {needs}"),
            403 => format!("missing rights: this needs {needs}"),
            404 => format!("{needs}: no such resource here; is Podwright installed?"),
            _ => format!("{needs} was refused"),
        };
        Self::refused(problem, status)
    }

    /// The server's faults, one a line, without its introduction of the webhook that found them.
    fn refused(problem: String, status: &Status) -> Self {
        let message = status.message.as_str();
        let introduced = message.split_once("denied the request: ");
        let faults = introduced.map_or(message, |(_, faults)| faults).lines();
        let faults = faults.map(str::trim).filter(|line| !line.is_empty());
        Self(faults.fold(problem, |text, fault| format!("{text}\n  {fault}")))
    }

    /// The message without line breaks.
    pub(crate) fn in_one_line(&self) -> String {
        self.0.replacen("\n  ", ": ", 1).replace("\n  ", "; ")
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(format!("cannot write to standard output: {error}"))
    }
}

/// A step that failed without an answer of the API server.
pub(crate) fn no_answer(doing: impl Display, error: &dyn Error) -> Failure {
    Failure(format!("{doing} failed: {}", ErrorChain(error)))
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
            let failure = Failure::denied("list and watch on pods", &status);
            assert_eq!(failure.to_string(), format!("{told}\n  no"));
        }
    }

    #[test]
    fn a_refusal_has_one_fault_a_line() {
        let status = Status::failure(
            "admission webhook \"crr.podwright.dev\" denied the request: spec.podName: no pod web\nspec.containers: empty",
            "BadRequest",
        );
        let failure = Failure::new("creating x", &kube::Error::Api(status.boxed()));
        let told = "creating x was refused\n  spec.podName: no pod web\n  spec.containers: empty";
        assert_eq!(failure.to_string(), told);
        let told = "creating x was refused: spec.podName: no pod web; spec.containers: empty";
        assert_eq!(failure.in_one_line(), told);
        let plain = Status::failure("pods \"web\" not found", "NotFound");
        let failure = Failure::new("reading pod web", &kube::Error::Api(plain.boxed()));
        let told = "reading pod web was refused\n  pods \"web\" not found";
        assert_eq!(failure.to_string(), told);
    }
}

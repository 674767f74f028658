//! The answer to a review.

use std::fmt;

use json_patch::Patch;

/// Everything there is to say of a request.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Why it is refused; allowed when empty.
    pub faults: Vec<Fault>,
    /// Told to an allowed request's author.
    pub warnings: Vec<String>,
    /// What completes an allowed request.
    pub patch: Patch,
}

/// One thing that is wrong, and what is allowed instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The field's path, as `kubectl explain` takes it, with list indices.
    pub field: String,
    pub problem: String,
    pub code: Code,
}

/// The HTTP status of a refusal, as OpenKruise's webhook answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// 400: the request cannot be meant.
    BadRequest,
    /// 403: what was once said stays.
    Forbidden,
}

// === impl Verdict ===

impl Verdict {
    pub fn is_allowed(&self) -> bool {
        self.faults.is_empty()
    }

    /// The status code of a refusal.
    pub fn code(&self) -> u16 {
        match self.faults.iter().map(|fault| fault.code).max() {
            Some(Code::Forbidden) => 403,
            Some(Code::BadRequest) | None => 400,
        }
    }

    /// All faults, one a line.
    pub fn message(&self) -> String {
        let lines: Vec<_> = self.faults.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

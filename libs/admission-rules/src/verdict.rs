//! The result of a review.

use std::fmt;

use json_patch::Patch;

/// Faults, warnings and changes of one object.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Reasons of a refusal; the object is allowed if there are none.
    pub faults: Vec<Fault>,
    /// Shown to the author of an allowed object.
    pub warnings: Vec<String>,
    /// Changes to an allowed object.
    pub patch: Patch,
}

/// One wrong field, and what is allowed instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Path as in `kubectl explain`, with list indices.
    pub field: String,
    pub problem: String,
    pub code: Code,
}

/// The HTTP status of a refusal, as in OpenKruise's webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// A field has a wrong value.
    BadRequest = 400,
    /// An immutable field was changed.
    Forbidden = 403,
}

// === impl Verdict ===

impl Verdict {
    pub(crate) fn bad(&mut self, field: impl Into<String>, problem: impl Into<String>) {
        self.refuse(Code::BadRequest, field.into(), problem.into());
    }

    pub(crate) fn forbid(&mut self, field: impl Into<String>, problem: impl Into<String>) {
        self.refuse(Code::Forbidden, field.into(), problem.into());
    }

    fn refuse(&mut self, code: Code, field: String, problem: String) {
        self.faults.push(Fault {
            field,
            problem,
            code,
        });
    }

    pub fn is_allowed(&self) -> bool {
        self.faults.is_empty()
    }

    /// The status code of a refusal.
    pub fn code(&self) -> u16 {
        let highest = self.faults.iter().map(|fault| fault.code).max();
        highest.unwrap_or(Code::BadRequest) as u16
    }

    /// All faults, one per line.
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

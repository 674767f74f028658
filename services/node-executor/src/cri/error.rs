//! Why a CRI call has no result, and whether the runtime is to blame or away.
//!
//! Owns the reading of gRPC's codes. Both containerd and CRI-O were looked at.

use std::{error::Error, time::Duration};

use tonic::{Code, Status};

#[derive(Debug, thiserror::Error)]
pub(crate) enum CriError {
    #[error("CRI {method} failed with {code:?}: {message}", code = .status.code(), message = .status.message())]
    Answered {
        method: &'static str,
        status: Box<Status>,
    },
    #[error("CRI {method} was not answered: {reason}")]
    NotAnswered {
        method: &'static str,
        reason: String,
    },
    #[error("CRI {method} was not answered within {limit:?}")]
    Late {
        method: &'static str,
        limit: Duration,
    },
}

// === impl CriError ===

impl CriError {
    /// A status is the runtime's own, or was made by the client for a connection that is not there.
    pub(super) fn answered(method: &'static str, status: Status) -> Self {
        // Only statuses made by the client have a source.
        match status.source() {
            Some(source) => Self::NotAnswered {
                method,
                reason: innermost(source).to_string(),
            },
            None => Self::Answered {
                method,
                status: Box::new(status),
            },
        }
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.code() == Some(Code::NotFound)
    }

    /// Whether the runtime does not speak CRI v1 at all.
    pub(crate) fn is_unimplemented(&self) -> bool {
        self.code() == Some(Code::Unimplemented)
    }

    /// Whether the runtime is not there, not ready yet, or went away in the middle.
    pub(crate) fn is_runtime_away(&self) -> bool {
        match self {
            Self::NotAnswered { .. } => true,
            // A runtime that shuts down cancels what it has begun.
            Self::Answered { status, .. } => {
                matches!(status.code(), Code::Unavailable | Code::Cancelled)
            }
            Self::Late { .. } => false,
        }
    }

    fn code(&self) -> Option<Code> {
        match self {
            Self::Answered { status, .. } => Some(status.code()),
            Self::NotAnswered { .. } | Self::Late { .. } => None,
        }
    }
}

/// The error that says what happened; those around it say "transport error".
fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost
}

//! Errors of CRI calls.
//!
//! Owns the meaning of gRPC's codes, as containerd and CRI-O use them.

use std::{error::Error, time::Duration};

use tonic::{Code, Status};

/// Why a CRI call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CriError {
    #[error("CRI {method} failed with {code:?}: {message}", code = .status.code(), message = .status.message())]
    Answered {
        method: &'static str,
        status: Box<Status>,
    },
    /// No connection, or it broke.
    #[error("CRI {method} was not answered: {reason}")]
    NotAnswered {
        method: &'static str,
        reason: String,
    },
    #[error("CRI {method} was not answered within {limit:?}")]
    TimedOut {
        method: &'static str,
        limit: Duration,
    },
}

pub(crate) type Result<T, E = CriError> = std::result::Result<T, E>;

// === impl CriError ===

impl CriError {
    /// The error for a status, which the runtime sent or the client made because the connection failed.
    pub(crate) fn answered(method: &'static str, status: Status) -> Self {
        let mut reason = status.source();
        // The innermost source has the reason; the outer ones are only "transport error".
        while let Some(source) = reason.and_then(Error::source) {
            reason = Some(source);
        }
        // Only statuses made by the client have a source.
        match reason.map(ToString::to_string) {
            Some(reason) => Self::NotAnswered { method, reason },
            None => Self::Answered {
                method,
                status: Box::new(status),
            },
        }
    }

    /// True if the runtime knows no such object.
    pub fn is_not_found(&self) -> bool {
        self.has_code(&[Code::NotFound])
    }

    /// True if the socket does not serve this CRI v1 method.
    pub fn is_unimplemented(&self) -> bool {
        self.has_code(&[Code::Unimplemented])
    }

    /// True if the runtime is absent, not ready yet, or stopped during the call.
    pub fn is_runtime_away(&self) -> bool {
        // A runtime that shuts down cancels its running calls.
        let has_code = self.has_code(&[Code::Unavailable, Code::Cancelled]);
        has_code || matches!(self, Self::NotAnswered { .. })
    }

    fn has_code(&self, codes: &[Code]) -> bool {
        matches!(self, Self::Answered { status, .. } if codes.contains(&status.code()))
    }
}

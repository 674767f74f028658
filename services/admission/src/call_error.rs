//! The error of a call to the API server.

/// A call that failed, with its verb and object.
#[derive(Debug, thiserror::Error)]
#[error("failed to {verb} the {what}")]
pub(crate) struct CallError {
    verb: &'static str,
    what: String,
    #[source]
    source: Box<kube::Error>,
}

pub(crate) fn failed_to(
    verb: &'static str,
    what: impl Into<String>,
) -> impl FnOnce(kube::Error) -> CallError {
    move |source| CallError {
        verb,
        what: what.into(),
        source: Box::new(source),
    }
}

//! Errors of requests, classified by what a caller can do about them.

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("the object changed since it was read, or another object has its name")]
    Conflict,
    #[error("the object does not exist")]
    Gone,
    #[error("the request to the API server failed")]
    Failed(#[source] Box<kube::Error>),
}

impl From<kube::Error> for WriteError {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if status.code == 409 => Self::Conflict,
            kube::Error::Api(status) if status.code == 404 => Self::Gone,
            _ => Self::Failed(Box::new(error)),
        }
    }
}

// === impl WriteError ===

impl WriteError {
    /// Why the server rejected the write; `None` for transient failures.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Self::Failed(error) => match &**error {
                kube::Error::Api(status) if matches!(status.code, 400 | 403 | 422) => {
                    Some(&status.message)
                }
                _ => None,
            },
            Self::Conflict | Self::Gone => None,
        }
    }

    /// True if a retry cannot succeed.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Conflict | Self::Gone => true,
            Self::Failed(error) => match &**error {
                // Credentials are read again for each request (401); 408 and 429 mean a slow or busy server.
                kube::Error::Api(status) => {
                    (400..500).contains(&status.code) && !matches!(status.code, 401 | 408 | 429)
                }
                _ => false,
            },
        }
    }

    /// Value of a metric's label.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Gone => "gone",
            Self::Failed(_) => "failed",
        }
    }
}

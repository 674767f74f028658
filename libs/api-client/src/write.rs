//! Why an object was not written: what a caller branches on.

/// What came of a write.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("another object, or a newer one, is there than was known")]
    Conflict,
    #[error("the object is gone")]
    Gone,
    #[error("failed to write to the API server")]
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
    /// What the API server has against it; `None` where it is only away, or has no time.
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

    /// Whether the same write would meet the same again, however late: what is refused for what it is, or for who asks.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Conflict | Self::Gone => true,
            Self::Failed(error) => match &**error {
                // Credentials are read again (401), a slow or busy server is a quick one later (408, 429).
                kube::Error::Api(status) => {
                    (400..500).contains(&status.code) && !matches!(status.code, 401 | 408 | 429)
                }
                _ => false,
            },
        }
    }

    /// A bounded word for metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Gone => "gone",
            Self::Failed(_) => "failed",
        }
    }
}

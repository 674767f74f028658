//! Display of an error with all its sources, for log lines and messages.

use std::{error::Error, fmt};

/// An error displayed as `step: cause: cause of the cause`.
///
/// A source whose text already ends the message is not repeated: many errors of other crates include it.
pub struct ErrorChain<'a>(pub &'a dyn Error);

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = self.0.to_string();
        f.write_str(&last)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            let text = error.to_string();
            if !last.ends_with(&text) {
                write!(f, ": {text}")?;
            }
            last = text;
            source = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("failed to open the store")]
    struct Outer(#[source] std::io::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("failed to read: {0}")]
    struct Repeating(#[source] std::io::Error);

    #[test]
    fn prints_each_step_once() {
        let outer = Outer(std::io::Error::other("disk full"));
        assert_eq!(
            ErrorChain(&outer).to_string(),
            "failed to open the store: disk full"
        );
        let repeating = Repeating(std::io::Error::other("disk full"));
        assert_eq!(
            ErrorChain(&repeating).to_string(),
            "failed to read: disk full"
        );
    }
}

//! The only place that reads the clock and makes random words.

use jiff::Timestamp;

/// How long the random end of a name is.
const SUFFIX: usize = 6;

/// The present moment by the system's clock.
#[expect(clippy::disallowed_methods, reason = "this is the place")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// A word that no other restart has.
pub(crate) fn random_word() -> String {
    let mut word = uuid::Uuid::new_v4().simple().to_string();
    word.truncate(SUFFIX);
    word
}

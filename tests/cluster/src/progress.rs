//! What a person gets to read: progress on standard error, answers on standard output.
//!
//! Whoever reads may have read enough and gone (`| head`): that is no failure.

use std::{fmt::Display, io::Write};

/// Says what is being done now.
pub fn say(line: impl Display) {
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// Gives an answer.
pub(crate) fn print(text: impl Display) {
    drop(write!(std::io::stdout(), "{text}"));
}

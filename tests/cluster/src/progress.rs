//! What a person who waits gets to read: one line per step, on standard error.

use std::io::Write;

/// Says what is being done now.
#[expect(
    clippy::print_stderr,
    reason = "the progress of a tool on the command line"
)]
pub fn say(line: impl std::fmt::Display) {
    eprintln!("{line}");
}

/// Gives an answer on standard output. Whoever reads it may have read enough (`| head`).
pub fn print(text: impl std::fmt::Display) {
    drop(write!(std::io::stdout(), "{text}"));
}

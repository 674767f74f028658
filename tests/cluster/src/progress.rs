//! What a person who waits gets to read: one line per step, on standard error.

/// Says what is being done now.
#[expect(
    clippy::print_stderr,
    reason = "the progress of a tool on the command line"
)]
pub fn say(line: impl std::fmt::Display) {
    eprintln!("{line}");
}

/// Gives an answer on standard output.
#[expect(
    clippy::print_stdout,
    reason = "the answer of a tool on the command line"
)]
pub fn print(text: impl std::fmt::Display) {
    print!("{text}");
}

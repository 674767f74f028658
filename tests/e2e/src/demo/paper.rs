//! How the demo looks: plain lines, a little weight where there is a terminal.

use std::io::{IsTerminal, Write, stdout};

/// Standard output.
pub(super) struct Paper {
    has_weight: bool,
}

const BOLD: &str = "1";
const FAINT: &str = "2";

impl Paper {
    pub(super) fn new() -> Self {
        let wants_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            has_weight: stdout().is_terminal() && !wants_none,
        }
    }

    pub(super) fn title(&self, text: &str) {
        self.print(&format!("\n{}", self.weighted(BOLD, text)));
    }

    pub(super) fn line(&self, text: &str) {
        self.print(&format!("  {text}"));
    }

    pub(super) fn faint(&self, text: &str) {
        self.print(&self.weighted(FAINT, text));
    }

    /// What is typed, and what is piped into it.
    pub(super) fn quote(&self, command: &str, input: &str) {
        self.line(&self.weighted(FAINT, &format!("$ {command}")));
        for line in input.lines() {
            self.line(&self.weighted(FAINT, &format!("| {line}")));
        }
        self.line("");
    }

    /// A command to try, and what for.
    pub(super) fn command(&self, command: &str, what: &str) {
        self.line(&format!("{command:<66} {}", self.weighted(FAINT, what)));
    }

    fn weighted(&self, weight: &str, text: &str) -> String {
        if self.has_weight {
            format!("\u{1b}[{weight}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// Whoever reads may have gone: that is no failure.
    fn print(&self, line: &str) {
        drop(writeln!(stdout(), "{line}"));
    }
}

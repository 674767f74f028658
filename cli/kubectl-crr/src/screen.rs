//! Where progress is told: lines one after the other, or on a terminal also a block that is painted anew.
//!
//! Owns the terminal's codes. What stands in the block is `progress`'s.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use crate::failure::Failure;

/// How wide and high a terminal is that does not say.
const USUAL: (usize, usize) = (80, 24);

/// How often what a terminal shows is made anew, for the seconds in it.
pub(crate) const REPAINT: Duration = Duration::from_secs(1);

/// How progress is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Every line stays, and nothing else is said.
    Plain,
    /// As plain, on standard error: standard output is an object's.
    Aside,
    /// A block that is painted anew, and above it what stays.
    Live { is_coloured: bool },
}

/// The one place that progress is told to.
#[derive(Debug)]
pub(crate) struct Screen {
    mode: Mode,
    block: Vec<String>,
}

/// How a line that stays is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Bad,
}

// === impl Screen ===

impl Screen {
    /// This process's, by its standard output and environment.
    pub(crate) fn of_process(has_format: bool) -> Self {
        let word = |name| std::env::var(name).unwrap_or_default();
        let is_terminal = io::stdout().is_terminal();
        let mode = mode(has_format, is_terminal, &word("TERM"), &word("NO_COLOR"));
        let block = Vec::new();
        Self { mode, block }
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self.mode, Mode::Live { .. })
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        use terminal_size::{Height, Width, terminal_size};
        terminal_size().map_or(USUAL, |(Width(width), Height(height))| {
            (width.into(), height.into())
        })
    }

    /// A step on the way, which the block shows where there is one.
    pub(crate) fn step(&mut self, line: &str) -> Result<(), Failure> {
        if self.is_live() {
            return Ok(());
        }
        self.line(line, Tone::Plain)
    }

    /// A line that stays.
    pub(crate) fn line(&mut self, line: &str, tone: Tone) -> Result<(), Failure> {
        match self.mode {
            Mode::Plain => writeln!(io::stdout(), "{line}")?,
            Mode::Aside => writeln!(io::stderr(), "{line}")?,
            Mode::Live { is_coloured } => {
                let line = if is_coloured {
                    coloured(line, tone)
                } else {
                    line.to_owned()
                };
                let text = format!("{}{line}\n{}", erased(&self.block), painted(&self.block));
                write_out(&text)?;
            }
        }
        Ok(())
    }

    pub(crate) fn warn(&mut self, line: &str) -> Result<(), Failure> {
        self.note(&format!("warning: {line}"))
    }

    /// Something that is no result, for standard error.
    pub(crate) fn note(&mut self, line: &str) -> Result<(), Failure> {
        let block = std::mem::take(&mut self.block);
        write_out(&erased(&block))?;
        writeln!(io::stderr(), "{line}")?;
        self.paint(block)
    }

    /// Shows that block instead of the last one; without a terminal, nothing.
    pub(crate) fn paint(&mut self, block: Vec<String>) -> Result<(), Failure> {
        if self.is_live() && block != self.block {
            write_out(&format!("{}{}", erased(&self.block), painted(&block)))?;
            self.block = block;
        }
        Ok(())
    }

    /// Takes the block away.
    pub(crate) fn clear(&mut self) -> Result<(), Failure> {
        self.paint(Vec::new())
    }
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn mode(has_format: bool, is_terminal: bool, term: &str, no_color: &str) -> Mode {
    if has_format {
        Mode::Aside
    } else if is_terminal && !matches!(term, "" | "dumb") {
        let is_coloured = no_color.is_empty(); // https://no-color.org
        Mode::Live { is_coloured }
    } else {
        Mode::Plain
    }
}

/// Back to the block's first line, and nothing from there on.
fn erased(block: &[String]) -> String {
    match block.len() {
        0 => String::new(),
        lines => format!("\r\x1b[{lines}A\x1b[J"),
    }
}

fn painted(block: &[String]) -> String {
    block.iter().map(|line| format!("{line}\n")).collect()
}

fn coloured(line: &str, tone: Tone) -> String {
    match tone {
        Tone::Plain => line.to_owned(),
        Tone::Good => format!("\x1b[32m{line}\x1b[0m"),
        Tone::Bad => format!("\x1b[31m{line}\x1b[0m"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paints_only_where_it_is_seen() {
        let coloured = Mode::Live { is_coloured: true };
        let plain = Mode::Live { is_coloured: false };
        for (has_format, is_terminal, term, no_color, expected) in [
            (false, true, "xterm", "", coloured),
            (false, true, "xterm", "1", plain),
            (false, true, "dumb", "", Mode::Plain),
            (false, true, "", "", Mode::Plain),
            (false, false, "xterm", "", Mode::Plain),
            (true, true, "xterm", "", Mode::Aside),
        ] {
            let mode = mode(has_format, is_terminal, term, no_color);
            assert_eq!(
                mode, expected,
                "{has_format} {is_terminal} {term:?} {no_color:?}"
            );
        }
    }

    #[test]
    fn a_block_is_taken_away_line_by_line() {
        let block = ["a", "b"].map(str::to_owned);
        assert_eq!(painted(&block), "a\nb\n");
        assert_eq!(erased(&block), "\r\x1b[2A\x1b[J");
        assert_eq!(erased(&[]), "");
    }
}

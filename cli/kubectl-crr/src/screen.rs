//! Progress output: lines, and on a terminal also a live block below them.
//!
//! Owns the terminal's control codes. `progress` makes the block's lines.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use terminal_size::{Height, Width, terminal_size};

use crate::failure::Result;

/// Columns and rows of a terminal whose size is unknown.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// How often the live block is refreshed, for the seconds in it.
pub(crate) const REPAINT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Plain,
    /// Lines on standard error: standard output is for an object.
    Aside,
    /// A live block on standard output, and above it lines that stay.
    Live {
        is_coloured: bool,
    },
}

#[derive(Debug)]
pub(crate) struct Screen {
    mode: Mode,
    block: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A step on the way; left out while a live block shows it.
    Step(String),
    Plain(String),
    /// The end of a restart, in green.
    Good(String),
    /// The failure of a restart, in red.
    Bad(String),
    Warning(String),
}

// === impl Screen ===

impl Screen {
    /// By this process's standard output and environment.
    pub(crate) fn of_process(has_format: bool) -> Self {
        let variable = |name| std::env::var(name).unwrap_or_default();
        let (term, no_color) = (variable("TERM"), variable("NO_COLOR"));
        Self {
            mode: mode(has_format, io::stdout().is_terminal(), &term, &no_color),
            block: Vec::new(),
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self.mode, Mode::Live { .. })
    }

    pub(crate) fn print(&mut self, line: &Line) -> Result<()> {
        match line {
            Line::Step(_) if self.is_live() => Ok(()),
            Line::Step(line) | Line::Plain(line) => self.stay(line, ""),
            Line::Good(line) => self.stay(line, "\x1b[32m"),
            Line::Bad(line) => self.stay(line, "\x1b[31m"),
            Line::Warning(line) => self.note(&format!("warning: {line}")),
        }
    }

    fn stay(&mut self, line: &str, colour: &str) -> Result<()> {
        match self.mode {
            Mode::Plain => writeln!(io::stdout(), "{line}")?,
            Mode::Aside => writeln!(io::stderr(), "{line}")?,
            Mode::Live { is_coloured } => {
                let is_coloured = is_coloured && !colour.is_empty();
                let end = if is_coloured { "\x1b[0m" } else { "" };
                let colour = if is_coloured { colour } else { "" };
                let (erased, painted) = (erased(&self.block), painted(&self.block));
                write_out(&format!("{erased}{colour}{line}{end}\n{painted}"))?;
            }
        }
        Ok(())
    }

    /// Prints a line on standard error.
    pub(crate) fn note(&mut self, line: &str) -> Result<()> {
        let block = std::mem::take(&mut self.block);
        write_out(&erased(&block))?;
        writeln!(io::stderr(), "{line}")?;
        self.paint(block)
    }

    /// Replaces the live block; does nothing without a terminal.
    pub(crate) fn paint(&mut self, block: Vec<String>) -> Result<()> {
        if self.is_live() && block != self.block {
            write_out(&format!("{}{}", erased(&self.block), painted(&block)))?;
            self.block = block;
        }
        Ok(())
    }

    pub(crate) fn clear(&mut self) -> Result<()> {
        self.paint(Vec::new())
    }
}

pub(crate) fn size() -> (usize, usize) {
    terminal_size().map_or(USUAL_SIZE, |(Width(columns), Height(rows))| {
        (columns.into(), rows.into())
    })
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

/// Codes that move to the block's first line and clear everything from there on.
fn erased(block: &[String]) -> String {
    match block.len() {
        0 => String::new(),
        lines => format!("\r\x1b[{lines}A\x1b[J"),
    }
}

fn painted(block: &[String]) -> String {
    block.iter().map(|line| format!("{line}\n")).collect()
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

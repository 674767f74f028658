//! Runs many histories and prints what occurred in them: `simulate [seeds] [first seed]`.
//!
//! Owns the command line and the progress line. Ends with 1 at the first violation that no known defect explains.

use std::{
    collections::BTreeMap,
    env,
    io::{self, Write},
    process::ExitCode,
};

use simulation::{Coverage, Known, Options, SCENARIOS};

/// How many seeds run between two progress lines: about a second.
const PROGRESS_EVERY: u64 = 10;

fn main() -> io::Result<ExitCode> {
    let mut numbers = env::args().skip(1).map(|text| text.parse());
    let seeds: u64 = numbers.next().and_then(Result::ok).unwrap_or(1_000);
    let first: u64 = numbers.next().and_then(Result::ok).unwrap_or(0);
    let mut out = io::stdout().lock();
    let mut coverage = Coverage::default();
    let mut known = BTreeMap::<_, u64>::new();
    for seed in first..first + seeds {
        for scenario in SCENARIOS {
            match Options::new(*scenario, seed).run() {
                Ok(outcome) => coverage.add(&outcome.coverage),
                Err(failure) => match Known::explanation_of(&failure) {
                    Some(defect) => *known.entry(defect.finding).or_default() += 1,
                    None => {
                        writeln!(out, "{failure}\nAgain: just simulate 1 {seed}")?;
                        return Ok(ExitCode::FAILURE);
                    }
                },
            }
        }
        let done = seed - first + 1;
        if done.is_multiple_of(PROGRESS_EVERY) {
            writeln!(out, "{done} of {seeds} seeds")?;
        }
    }
    writeln!(
        out,
        "{coverage}known defects, histories cut off by each: {known:?}"
    )?;
    Ok(ExitCode::SUCCESS)
}

//! The command line.

use clap::{Args as Options, Parser, Subcommand, ValueEnum};

/// Measures Podwright on a cluster: KUBECONFIG's, or a test cluster for the time of the measurement.
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) what: What,
    /// Measure, here and now: the cluster is there
    #[arg(long, hide = true, global = true)]
    pub(crate) here: bool,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum What {
    /// Recreate containers: alone, in a row, at once, in a burst, and beside a bare stop
    Crr(Crr),
    /// Launch pods level by level, beside the same pods without priorities
    Launch(Launch),
}

#[derive(Clone, Debug, Options)]
pub(crate) struct Launch {
    /// Pods of each kind, one after the other
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) count: u32,
    /// Pods at once: this many with and without levels, then twice as many with
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) together: u32,
    /// Measure memory alone, with this many pods of two levels that no node takes
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) idle: Option<u32>,
}

#[derive(Clone, Debug, Options)]
pub(crate) struct Crr {
    /// What to measure
    #[arg(long, value_delimiter = ',', default_values_t = Phase::ALL)]
    pub(crate) phases: Vec<Phase>,
    /// Fresh pods, one after the other: of `alone` and of `bare`
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) count: u32,
    /// Requests of `row`
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) row: u32,
    /// Pods of `together`
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) together: u32,
    /// Pods of `burst`, two requests each
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub(crate) burst: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Phase {
    /// One request on a fresh pod, again and again
    Alone,
    /// A bare StopContainer on a fresh pod, again and again
    Bare,
    /// One container, request after request
    Row,
    /// Some pods, all requests at once
    Together,
    /// Many pods, two requests each, all at once
    Burst,
}

// === impl Phase ===

impl Phase {
    const ALL: [Self; 5] = [
        Self::Alone,
        Self::Bare,
        Self::Row,
        Self::Together,
        Self::Burst,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Bare => "bare",
            Self::Row => "row",
            Self::Together => "together",
            Self::Burst => "burst",
        }
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_phases_unless_told_otherwise() {
        let phases = |words: &[&str]| match Args::parse_from(words).what {
            What::Crr(crr) => crr.phases,
            What::Launch(_) => Vec::new(),
        };
        assert_eq!(phases(&["bench", "crr"]), Phase::ALL);
        let some = phases(&["bench", "crr", "--phases", "row,burst"]);
        assert_eq!(some, [Phase::Row, Phase::Burst]);
    }
}

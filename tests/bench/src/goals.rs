//! The goals beside what was measured. Pure; nothing is asserted.

use std::time::Duration;

use crate::{args::Phase, figures::Figures, measured::Measured};

pub(crate) struct Goal {
    pub(crate) what: &'static str,
    /// What was measured, and the limit it is held against.
    pub(crate) figure: f64,
    pub(crate) limit: f64,
}

// === impl Goal ===

impl Goal {
    pub(crate) fn is_met(&self) -> bool {
        self.figure <= self.limit
    }

    pub(crate) fn line(&self) -> String {
        let met = if self.is_met() { "met" } else { "NOT MET" };
        let Self {
            what,
            figure,
            limit,
            ..
        } = self;
        format!("{what:<62} {figure:>9.3}   ≤ {limit:>7.3}   {met}")
    }
}

/// Those of the phases that were measured.
pub(crate) fn goals(measured: &Measured) -> Vec<Goal> {
    let goal = |what, figure: Option<f64>, limit| {
        figure.map(|figure| Goal {
            what,
            figure,
            limit,
        })
    };
    let p99 = |durations: &[Duration]| percentile(durations, 99);
    let bare = percentile(&measured.bare, 50);
    let longest = measured
        .row
        .iter()
        .map(|(took, stop)| took.saturating_sub(*stop))
        .max();
    let last = measured.together.as_ref().map(|many| many.until_last);
    let lost = measured.burst.as_ref().map(|many| many.lost.len());
    let alone = measured.api_each(Phase::Alone);
    let all = [
        goal(
            "create → StopContainer, p99, seconds",
            p99(&measured.until_stop),
            0.05,
        ),
        goal(
            "ready → Completed, p99, seconds",
            p99(&measured.from_ready_to_completed),
            0.05,
        ),
        bare.and_then(|bare| {
            let figure = percentile(&measured.until_completed, 50);
            goal(
                "create → Completed, p50, against a bare stop's p50 + 0.1",
                figure,
                bare + 0.1,
            )
        }),
        goal(
            "in a row: the longest without its stop, seconds",
            longest.map(|it| it.as_secs_f64()),
            2.5,
        ),
        goal(
            "together: first create → last Completed, seconds",
            last.map(|it| it.as_secs_f64()),
            1.5,
        ),
        goal(
            "burst: requests lost",
            lost.and_then(|lost| u32::try_from(lost).ok())
                .map(f64::from),
            0.0,
        ),
        goal("API requests, alone", alone, 5.0),
        alone.and_then(|alone| {
            let each = measured.api_each(Phase::Burst);
            goal("API requests, burst against alone", each, alone)
        }),
    ];
    all.into_iter().flatten().collect()
}

fn percentile(durations: &[Duration], percent: usize) -> Option<f64> {
    let figures = Figures::of(durations.iter().copied());
    (!durations.is_empty()).then(|| figures.percentile(percent).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn only_what_was_measured_is_held_against_a_goal() {
        let mut measured = Measured::begin(Timestamp::UNIX_EPOCH);
        assert!(goals(&measured).is_empty());
        measured.row = vec![(Duration::from_secs(3), Duration::from_secs(1))];
        measured.until_completed = vec![Duration::from_millis(1200)];
        measured.bare = vec![Duration::from_secs(1)];
        let met: Vec<_> = goals(&measured).iter().map(Goal::is_met).collect();
        assert_eq!(met, [false, true]);
    }

    #[test]
    fn a_line_fits_a_terminal() {
        let goal = Goal {
            what: "burst: requests lost",
            figure: 1.0,
            limit: 0.0,
        };
        assert!(goal.line().chars().count() <= 100);
        assert!(goal.line().ends_with("NOT MET"));
    }
}

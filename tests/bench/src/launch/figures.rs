//! What was measured of launches, as tables, goals and raw figures. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Kind;
use crate::{
    audit,
    figures::Figures,
    goals::Goal,
    report::{Report, aims, head, memory, raw_goals, row, seconds},
};

/// All of it.
pub(crate) struct Measured {
    began_at: Timestamp,
    pub(super) samples: Vec<Sample>,
    pub(super) together: Vec<Many>,
    pub(super) memory: BTreeMap<&'static str, Vec<u64>>,
}

/// One kind of pod, one after the other.
pub(super) struct Sample {
    kind: Kind,
    /// From each creation until all containers were ready.
    pub(super) until_ready: Vec<Duration>,
    /// From one container's ready to the next one's; the first from the creation.
    pub(super) levels: Vec<Duration>,
    /// The barrier-manager's requests for each pod, by verb and resource.
    pub(super) writes: BTreeMap<String, f64>,
}

/// Many pods of two containers at once: each one's time from the first creation until it was ready.
pub(super) struct Many {
    pub(super) is_ordered: bool,
    pub(super) each: Vec<Duration>,
}

// === impl Measured ===

impl Measured {
    pub(super) fn begin(began_at: Timestamp) -> Self {
        Self {
            began_at,
            samples: Vec::new(),
            together: Vec::new(),
            memory: BTreeMap::new(),
        }
    }

    pub(crate) fn report(&self) -> Report {
        let goals = self.goals();
        let samples = self.samples.iter();
        let together = self
            .together
            .iter()
            .map(|many| row(&many.name(), &many.each));
        let times = samples
            .clone()
            .flat_map(Sample::rows)
            .chain(together)
            .collect::<Vec<_>>();
        Report {
            what: "launch",
            began_at: self.began_at,
            tables: vec![
                [vec![head()], times].concat(),
                self.requests(),
                memory(&self.memory),
                aims(&goals),
            ],
            raw: json!({
                "alone": samples.map(Sample::raw).collect::<Vec<_>>(),
                "together": self.together.iter().map(Many::raw).collect::<Vec<_>>(),
                "resident_kilobytes": self.memory,
                "goals": raw_goals(&goals),
            }),
        }
    }

    fn requests(&self) -> Vec<String> {
        let ordered: Vec<_> = self
            .samples
            .iter()
            .filter(|it| it.kind.is_ordered && !it.kind.is_probed)
            .collect();
        let columns = ordered
            .iter()
            .map(|it| format!(" {:>9}", format!("{} levels", it.kind.containers)));
        let mut lines = vec![format!(
            "{:<57}{}",
            "the barrier-manager's API requests per pod (audit log)",
            columns.collect::<String>()
        )];
        let kinds: BTreeSet<_> = ordered.iter().flat_map(|it| it.writes.keys()).collect();
        for kind in kinds {
            let figures = ordered
                .iter()
                .map(|it| it.writes.get(kind).copied().unwrap_or_default());
            let figures: String = figures.map(|figure| format!(" {figure:>9.2}")).collect();
            lines.push(format!("{kind:<57}{figures}"));
        }
        lines
    }

    fn goals(&self) -> Vec<Goal> {
        let median = |containers, is_ordered, is_probed| {
            let kind = Kind {
                containers,
                is_ordered,
                is_probed,
            };
            let sample = self.samples.iter().find(|sample| sample.kind == kind)?;
            Some(percentile(&sample.until_ready, 50))
        };
        let over = |containers, is_probed| {
            let with = median(containers, true, is_probed)?;
            Some(with - median(containers, false, is_probed)?)
        };
        let goal = |what, figure: Option<f64>, limit| {
            figure.map(|figure| Goal {
                what,
                figure,
                limit,
            })
        };
        let last = |is_ordered| {
            let many = self
                .together
                .iter()
                .find(|many| many.is_ordered == is_ordered)?;
            Some(percentile(&many.each, 100))
        };
        let ratio = last(true)
            .zip(last(false))
            .map(|(with, without)| with / without);
        let all = [
            goal("three levels over none, p50, seconds", over(3, false), 2.5),
            goal(
                "three probed levels over none, p50, seconds a level",
                over(3, true).map(|over| over / 3.0),
                2.2,
            ),
            goal(
                "five probed levels over none, p50, seconds a level",
                over(5, true).map(|over| over / 5.0),
                2.2,
            ),
            goal("many at once, two levels against none, ratio", ratio, 1.5),
        ];
        all.into_iter().flatten().collect()
    }
}

// === impl Sample ===

impl Sample {
    pub(super) fn of(kind: Kind) -> Self {
        Self {
            kind,
            until_ready: Vec::new(),
            levels: Vec::new(),
            writes: BTreeMap::new(),
        }
    }

    fn name(&self) -> String {
        let Kind {
            containers,
            is_ordered,
            is_probed,
        } = self.kind;
        let what = if is_ordered { "levels" } else { "containers" };
        let how = if is_probed { ", probed" } else { "" };
        format!("{containers} {what}{how}")
    }

    pub(super) fn line(&self) -> String {
        let median = percentile(&self.until_ready, 50);
        format!("{}: {median:.3} s until all are ready", self.name())
    }

    fn rows(&self) -> Vec<String> {
        let mut rows = vec![row(
            &format!("{}: create → ready", self.name()),
            &self.until_ready,
        )];
        if self.kind.is_ordered {
            rows.push(row(&format!("{}: each level", self.name()), &self.levels));
        }
        rows
    }

    fn raw(&self) -> Value {
        json!({
            "kind": self.name(),
            "create_to_ready_seconds": seconds(&self.until_ready),
            "level_seconds": seconds(&self.levels),
            "requests_per_pod": self.writes,
        })
    }
}

// === impl Many ===

impl Many {
    fn name(&self) -> String {
        let what = if self.is_ordered {
            "with two levels"
        } else {
            "without levels"
        };
        format!("{} at once {what}", self.each.len())
    }

    pub(super) fn line(&self) -> String {
        let last = percentile(&self.each, 100);
        format!("{}: {last:.3} s until all are ready", self.name())
    }

    fn raw(&self) -> Value {
        json!({ "kind": self.name(), "first_create_to_ready_seconds": seconds(&self.each) })
    }
}

/// The barrier-manager's own, of so many pods; leases and watches come with or without them.
pub(super) fn writes(counts: &BTreeMap<audit::Kind, usize>, pods: u32) -> BTreeMap<String, f64> {
    let ours = counts.iter().filter(|((service, verb, resource), _)| {
        service == "barrier-manager" && verb != "watch" && resource != "leases"
    });
    ours.map(|((_, verb, resource), count)| {
        let count = u32::try_from(*count).unwrap_or(u32::MAX);
        (
            format!("{verb:<7} {resource}"),
            f64::from(count) / f64::from(pods),
        )
    })
    .collect()
}

fn percentile(durations: &[Duration], percent: usize) -> f64 {
    let figures = Figures::of(durations.iter().copied());
    figures.percentile(percent).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_what_levels_cost_more_than_none() {
        let mut measured = Measured::begin(Timestamp::UNIX_EPOCH);
        assert!(measured.goals().is_empty());
        for (is_ordered, seconds) in [(false, 1), (true, 3)] {
            let mut sample = Sample::of(Kind {
                containers: 3,
                is_ordered,
                is_probed: false,
            });
            sample.until_ready = vec![Duration::from_secs(seconds)];
            measured.samples.push(sample);
            let each = vec![Duration::from_secs(seconds * 2)];
            measured.together.push(Many { is_ordered, each });
        }
        let goals: Vec<_> = measured.goals().iter().map(|goal| goal.figure).collect();
        assert_eq!(goals, [2.0, 3.0]);
        let tables = measured.report().tables;
        assert_eq!(tables[0].len(), 6, "{tables:?}");
    }
}

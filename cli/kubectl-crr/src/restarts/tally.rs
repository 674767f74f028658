//! Pods by stage, as sentences and as an exit code.

use super::{Restarts, Stage};
use crate::failure::Exit;

/// Names of pods by stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) restarted: Vec<String>,
    pub(crate) failed: Vec<String>,
    /// The number of failed pods for which no request was made.
    pub(crate) refused: usize,
    pub(crate) overdue: Vec<String>,
    pub(crate) in_flight: Vec<String>,
    pub(crate) gone: Vec<String>,
    pub(crate) waiting: Vec<String>,
}

// === impl Restarts: tally ===

impl Restarts {
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for entry in &self.entries {
            let pods = match entry.stage {
                Stage::Waiting => &mut tally.waiting,
                Stage::Begun { .. } | Stage::Settling { .. } => &mut tally.in_flight,
                Stage::Restarted => &mut tally.restarted,
                Stage::Failed => {
                    tally.refused += usize::from(entry.request.is_none());
                    &mut tally.failed
                }
                Stage::Overdue => &mut tally.overdue,
                Stage::Gone => &mut tally.gone,
            };
            pods.push(entry.member.name.clone());
        }
        tally
    }
}

// === impl Tally ===

impl Tally {
    pub(crate) fn begun(&self) -> usize {
        let ended = self.restarted.len() + self.failed.len() + self.overdue.len();
        ended + self.in_flight.len()
    }

    /// `8 of 10 pods restarted, 1 failed, 1 not begun`
    pub(crate) fn sentence(&self) -> String {
        let count = self.begun() + self.gone.len() + self.waiting.len();
        let pods = if count == 1 { "pod" } else { "pods" };
        let mut text = format!("{} of {count} {pods} restarted", self.restarted.len());
        for (pods, word) in [
            (&self.failed, "failed"),
            (&self.overdue, "not ready again in time"),
            (&self.in_flight, "in flight"),
            (&self.gone, "gone before"),
            (&self.waiting, "not begun"),
        ] {
            if !pods.is_empty() {
                text += &format!(", {} {word}", pods.len());
            }
        }
        text
    }

    /// The sentence, and the names of the pods that were not restarted.
    pub(crate) fn lines(&self) -> Vec<String> {
        let names = [
            (&self.failed, "failed"),
            (&self.overdue, "not ready again in time"),
            (&self.in_flight, "in flight, and going on"),
            (&self.waiting, "not begun"),
        ];
        let names = names.into_iter().filter(|(pods, _)| !pods.is_empty());
        let names = names.map(|(pods, word)| format!("{word}: {}", pods.join(", ")));
        [self.sentence()].into_iter().chain(names).collect()
    }

    /// The exit code, unless the command is interrupted.
    pub(crate) fn exit(&self) -> Exit {
        let is_nothing_made = self.restarted.is_empty() && self.overdue.is_empty();
        if self.failed.is_empty() {
            let is_well = self.overdue.is_empty() && self.waiting.is_empty();
            if is_well { Exit::Done } else { Exit::Timeout }
        } else if is_nothing_made && self.refused == self.failed.len() {
            Exit::Refused
        } else {
            Exit::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter for each pod: r restarted, f failed, F refused, o overdue, i in flight, g gone, w waiting.
    fn tally(letters: &str) -> Tally {
        let mut tally = Tally::default();
        for letter in letters.chars() {
            let pods = match letter {
                'r' => &mut tally.restarted,
                'f' => &mut tally.failed,
                'F' => {
                    tally.refused += 1;
                    &mut tally.failed
                }
                'o' => &mut tally.overdue,
                'i' => &mut tally.in_flight,
                'g' => &mut tally.gone,
                _ => &mut tally.waiting,
            };
            pods.push(letter.to_string());
        }
        tally
    }

    #[test]
    fn says_what_has_become_of_the_pods() {
        for (letters, sentence, exit) in [
            ("r", "1 of 1 pod restarted", Exit::Done),
            ("rr", "2 of 2 pods restarted", Exit::Done),
            ("rg", "1 of 2 pods restarted, 1 gone before", Exit::Done),
            (
                "rrfw",
                "2 of 4 pods restarted, 1 failed, 1 not begun",
                Exit::Failed,
            ),
            ("rF", "1 of 2 pods restarted, 1 failed", Exit::Failed),
            (
                "Fww",
                "0 of 3 pods restarted, 1 failed, 2 not begun",
                Exit::Refused,
            ),
            ("FF", "0 of 2 pods restarted, 2 failed", Exit::Refused),
            ("fF", "0 of 2 pods restarted, 2 failed", Exit::Failed),
            (
                "ro",
                "1 of 2 pods restarted, 1 not ready again in time",
                Exit::Timeout,
            ),
            ("rw", "1 of 2 pods restarted, 1 not begun", Exit::Timeout),
            (
                "of",
                "0 of 2 pods restarted, 1 failed, 1 not ready again in time",
                Exit::Failed,
            ),
        ] {
            let tally = tally(letters);
            assert_eq!(
                (tally.sentence().as_str(), tally.exit()),
                (sentence, exit),
                "{letters}"
            );
        }
    }

    #[test]
    fn names_those_that_need_a_look() {
        let lines = tally("rriww").lines();
        let told = [
            "2 of 5 pods restarted, 1 in flight, 2 not begun",
            "in flight, and going on: i",
            "not begun: w, w",
        ];
        assert_eq!(lines, told);
    }
}

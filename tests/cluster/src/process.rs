//! Who a process is: its number together with its start time, so that a number the system has
//! given to another process since is never signalled.

use std::fs;

use anyhow::{Context, Result};
use nix::{errno::Errno, sys::signal::Signal, unistd::Pid};
use serde::{Deserialize, Serialize};

/// One process, and no later one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub pid: i32,
    /// Clock ticks from the machine's start to the process's.
    started: u64,
}

/// What a process is doing, as far as we care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Running,
    Paused,
    Dead,
}

impl Identity {
    /// The process that has this number now.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let (_, started) = parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
        Some(Self { pid, started })
    }

    pub(crate) fn condition(&self) -> Condition {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok();
        match stat.as_deref().and_then(parse_stat) {
            Some((state, started)) if started == self.started => match state {
                'Z' | 'X' => Condition::Dead,
                'T' | 't' => Condition::Paused,
                _ => Condition::Running,
            },
            _ => Condition::Dead,
        }
    }

    pub(crate) fn alive(&self) -> bool {
        self.condition() != Condition::Dead
    }

    /// Sends a signal, unless the process is dead already.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        if self.alive() {
            signal_pid(self.pid, signal)
        } else {
            Ok(())
        }
    }
}

/// Sends a signal to whoever has the number now: only for numbers just read from our own cgroups
/// and namespaces.
pub(crate) fn signal_pid(pid: i32, signal: Signal) -> Result<()> {
    match nix::sys::signal::kill(Pid::from_raw(pid), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("failed to send {signal} to {pid}")),
    }
}

/// This process and the ones that started it, whom a clean-up must spare.
pub(crate) fn ourselves_and_ancestors() -> Vec<i32> {
    let mut found = Vec::new();
    let mut pid = std::process::id().cast_signed();
    while pid > 1 && !found.contains(&pid) {
        found.push(pid);
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        pid = fields(&stat)
            .and_then(|mut rest| rest.nth(1)?.parse().ok())
            .unwrap_or(0);
    }
    found
}

/// State letter and start time out of `/proc/<pid>/stat`.
fn parse_stat(stat: &str) -> Option<(char, u64)> {
    let mut rest = fields(stat)?;
    let state = rest.next()?.chars().next()?;
    Some((state, rest.nth(18)?.parse().ok()?))
}

/// The fields from the third (state) on: the second is a name that may itself hold blanks and brackets.
fn fields(stat: &str) -> Option<impl Iterator<Item = &str>> {
    Some(stat.rsplit_once(')')?.1.split_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_is_skipped() {
        let stat = "7 (a) R 1 (x) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1 1";
        assert_eq!(parse_stat(stat), Some(('S', 4711)));
        assert_eq!(parse_stat("nonsense"), None);
        assert_eq!(parse_stat("1 (short) S 1"), None);
    }

    #[test]
    fn a_recycled_number_is_another_process() {
        let own = Identity::of(std::process::id().cast_signed()).unwrap();
        assert!(own.alive());
        let earlier = Identity {
            started: own.started - 1,
            ..own
        };
        assert_eq!(earlier.condition(), Condition::Dead);
        earlier.signal(Signal::SIGKILL).unwrap();
    }

    #[test]
    fn we_are_among_ourselves() {
        let found = ourselves_and_ancestors();
        assert_eq!(found[0], std::process::id().cast_signed());
        assert!(!found.contains(&1));
    }
}

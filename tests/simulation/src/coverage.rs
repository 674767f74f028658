//! What happened over many histories: how often each scenario, fault, event and effect occurred.
//!
//! Owns the counters and the table. The lists of all kinds are beside the kinds.

use std::{collections::BTreeMap, fmt};

use crr_rules::messages;

use crate::{Fault, SCENARIOS, shell};

/// How often each kind of each group occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<(&'static str, &'static str), u64>);

// === impl Coverage ===

impl Coverage {
    pub(crate) fn count(&mut self, group: &'static str, kind: &'static str) {
        *self.0.entry((group, kind)).or_default() += 1;
    }

    pub fn add(&mut self, other: &Self) {
        for (key, count) in &other.0 {
            *self.0.entry(*key).or_default() += count;
        }
    }

    /// Kinds that never occurred, as `group: kind`.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for (group, kinds) in expected() {
            for kind in kinds {
                if !self.0.contains_key(&(group, kind)) {
                    missing.push(format!("{group}: {kind}"));
                }
            }
        }
        missing
    }
}

/// Messages of ended requests.
const ENDS: [&str; 4] = [
    "",
    messages::POD_GONE,
    messages::DEADLINE,
    messages::NODE_SILENT,
];

/// Every kind that has to occur in the normal run.
fn expected() -> Vec<(&'static str, Vec<&'static str>)> {
    let faults = Fault::ALL.iter();
    let faults = faults.filter(|fault| !fault.is_trigger() && !fault.is_amplifier());
    vec![
        (
            "scenario",
            SCENARIOS.iter().map(|scenario| scenario.name).collect(),
        ),
        ("end of a request", ENDS.to_vec()),
        ("fault", faults.map(|fault| fault.name()).collect()),
        ("crr effect", shell::scheduler::EFFECTS.to_vec()),
        ("crr write", shell::scheduler::WRITES.to_vec()),
        ("node effect", shell::executor::EFFECTS.to_vec()),
        ("barrier effect", shell::manager::EFFECTS.to_vec()),
        ("barrier write", shell::manager::WRITES.to_vec()),
    ]
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for ((group, kind), count) in &self.0 {
            if *group != before {
                writeln!(f, "{group}")?;
                before = group;
            }
            writeln!(f, "  {kind:<24} {count:>9}")?;
        }
        Ok(())
    }
}

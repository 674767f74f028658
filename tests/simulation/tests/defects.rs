//! Bugs planted on purpose are found, and defects that are known are still seen.

use simulation::{KNOWN, Options, Plant, SCENARIOS, Scenario};

/// So many histories are enough to find each planted bug.
const SEEDS: u64 = 200;

/// So many histories are enough to see each known defect.
const SEEDS_OF_KNOWN: u64 = 1_000;

fn scenario(name: &str) -> Scenario {
    let mut scenarios = SCENARIOS.iter();
    *scenarios
        .find(|scenario| scenario.name == name)
        .unwrap_or_else(|| panic!("there is no scenario {name}"))
}

#[test]
fn every_planted_bug_is_found() {
    for (plant, name, violations) in Plant::ALL {
        let found = (0..SEEDS).find(|seed| {
            let options = Options {
                plant: Some(*plant),
                ..Options::new(scenario(name), *seed)
            };
            let failure = options.run().err();
            failure.is_some_and(|failure| violations.contains(&failure.violation.name().as_str()))
        });
        let seeds = found.unwrap_or_else(|| panic!("{plant:?} passed {SEEDS} histories")) + 1;
        println!("{plant:?} ({name}): found after {seeds} seeds");
    }
}

/// One that is not seen any more is repaired: take it out of the table, and its trigger into the normal run.
#[test]
fn every_known_defect_is_still_seen() {
    let mut repaired = Vec::new();
    for known in KNOWN {
        let found = (0..SEEDS_OF_KNOWN).find(|seed| {
            let options = Options {
                trigger: known.trigger,
                ..Options::new(scenario(known.scenario), *seed)
            };
            let failure = options.run().err();
            failure.is_some_and(|failure| failure.violation.name() == known.violation)
        });
        let (finding, name, violation) = (known.finding, known.scenario, known.violation);
        match found {
            Some(seed) => println!("{finding} ({name}): {violation} with seed {seed}"),
            None => repaired.push(format!("{finding} ({name}): {violation}")),
        }
    }
    assert_eq!(
        repaired, [""; 0],
        "not seen in {SEEDS_OF_KNOWN} histories each"
    );
}

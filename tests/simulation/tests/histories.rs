//! Many histories of every scenario in which everything goes wrong.

use std::collections::BTreeMap;

use simulation::{Coverage, Known, Options, SCENARIOS};

const SEEDS: u64 = 200;

#[test]
fn every_rule_holds_in_every_history() {
    let mut coverage = Coverage::default();
    let mut known = BTreeMap::<_, u64>::new();
    for seed in 0..SEEDS {
        for scenario in SCENARIOS {
            match Options::new(*scenario, seed).run() {
                Ok(outcome) => coverage.add(&outcome.coverage),
                Err(failure) => match Known::explanation_of(&failure) {
                    Some(defect) => *known.entry(defect.finding).or_default() += 1,
                    None => panic!("{failure}"),
                },
            }
        }
    }
    println!("{coverage}known defects: {known:?}");
    assert_eq!(coverage.missing(), [""; 0]);
}

#[test]
fn the_same_seed_is_the_same_history() {
    for scenario in SCENARIOS {
        let options = Options::new(*scenario, 7);
        assert_eq!(options.run(), options.run());
    }
}

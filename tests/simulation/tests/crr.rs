//! Thousands of histories of one CRR, and a planted bug that has to be found.

use simulation::{Plant, run};

const SEEDS: u64 = 3000;

#[test]
fn every_history_ends_and_stops_nothing_twice() {
    let mut crashes = 0;
    for seed in 0..SEEDS {
        match run(seed, Plant::Nothing) {
            Ok(outcome) => crashes += outcome.crashes,
            Err(violation) => panic!("seed {seed}: {violation:#?}"),
        }
    }
    assert!(
        crashes > 100,
        "faults did happen: {crashes} crashes in {SEEDS} histories"
    );
}

#[test]
fn the_same_seed_is_the_same_history() {
    assert_eq!(run(7, Plant::Nothing), run(7, Plant::Nothing));
}

#[test]
fn a_fence_left_out_is_found() {
    let found = (0..SEEDS)
        .filter(|seed| run(*seed, Plant::NoFence).is_err())
        .count();
    assert!(
        found > 0,
        "an executor without a fence passed {SEEDS} histories"
    );
}

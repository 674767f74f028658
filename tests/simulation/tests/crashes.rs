//! One crash at every point of every scenario: before and after each effect of each process.

use simulation::{Known, Mode, Options, SCENARIOS};

const SEEDS: u64 = 2;

#[test]
fn one_crash_anywhere_breaks_nothing() {
    let mut crashes = 0;
    for scenario in SCENARIOS {
        for seed in 0..SEEDS {
            let run = |mode| Options {
                mode,
                ..Options::new(*scenario, seed)
            };
            let quiet = match run(Mode::Quiet).run() {
                Ok(outcome) => outcome,
                Err(failure) if Known::explanation_of(&failure).is_some() => continue,
                Err(failure) => panic!("without a crash: {failure}"),
            };
            for (process, points) in quiet.crash_points {
                for point in 1..=points {
                    crashes += 1;
                    let Err(failure) = run(Mode::CrashAt(process, point)).run() else {
                        continue;
                    };
                    let is_known = Known::explanation_of(&failure).is_some();
                    assert!(is_known, "{process:?} crashed at point {point}: {failure}");
                }
            }
        }
    }
    println!("{crashes} histories with one crash");
    assert!(crashes > 2_000);
}

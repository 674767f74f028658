//! Whole launches: any pod, any order of events, any faults.

use proptest::prelude::*;

use super::{
    world::{Fault, Move, Report, World},
    *,
};

fn steps() -> impl Strategy<Value = Move> {
    let fault = prop_oneof![
        8 => Just(Fault::None),
        1 => Just(Fault::LostAnswer),
        1 => Just(Fault::Failure),
        1 => Just(Fault::Conflict),
    ];
    prop_oneof![
        6 => fault.prop_map(Move::Execute),
        1 => moves_without_faults(),
        12 => moves_without_faults(),
    ]
}

fn moves_without_faults() -> impl Strategy<Value = Move> {
    let report = prop_oneof![Just(Report::Lost), Just(Report::Delivered)];
    prop_oneof![
        6 => Just(Move::Execute(Fault::None)),
        6 => Just(Move::Answer),
        4 => Just(Move::DeliverPod),
        4 => Just(Move::DeliverMap),
        6 => (0_usize..6, any::<bool>(), report)
            .prop_map(|(index, is_ready, report)| Move::Sync { index, is_ready, report }),
        1 => Just(Move::RelistPods),
        1 => Just(Move::RelistMaps),
        1 => Just(Move::Tick),
        1 => Just(Move::NewLeader),
    ]
}

fn world(priorities: &[i32], has_leftover: bool) -> World {
    let names = ["c0", "c1", "c2", "c3", "c4", "c5"];
    let containers: Vec<_> = names.into_iter().zip(priorities.iter().copied()).collect();
    let leftover = BarrierMap {
        uid: "leftover".to_owned(),
        owners: vec!["earlier".into()],
        ..barrier_map(&[])
    };
    World::new(
        launch_pod(&containers).build(),
        has_leftover.then_some(leftover),
    )
}

/// Runs the moves, then everything that is left without faults, and checks the end.
fn check(priorities: &[i32], has_leftover: bool, moves: Vec<Move>) -> Result<(), TestCaseError> {
    let mut world = world(priorities, has_leftover);
    for step in moves {
        world.step(step);
    }
    world.settle();
    prop_assert!(world.pod.is_completed, "{:?}", world.state());
    prop_assert!(
        world
            .pod
            .pod
            .containers
            .iter()
            .all(|status| status.is_ready)
    );
    prop_assert_eq!(world.pod.pod.containers.len(), priorities.len());
    prop_assert_eq!((world.state().pods, world.state().launching), (1, 0));
    if world.is_undisturbed {
        let levels: BTreeSet<_> = priorities.iter().collect();
        let of_leftover = usize::from(has_leftover);
        let (map_writes, pod_writes) = (world.map_writes, world.pod_writes);
        prop_assert!(
            map_writes <= levels.len() + of_leftover,
            "{map_writes} writes"
        );
        prop_assert!(pod_writes <= levels.len(), "{pod_writes} nudges");
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_launch_ends_in_order_whatever_fails(
        priorities in prop::collection::vec(-2..3, 1..7),
        has_leftover: bool,
        moves in prop::collection::vec(steps(), 0..120),
    ) {
        check(&priorities, has_leftover, moves)?;
    }

    #[test]
    fn every_launch_ends_within_its_writes_when_nothing_fails(
        priorities in prop::collection::vec(-2..3, 1..7),
        moves in prop::collection::vec(moves_without_faults(), 0..120),
    ) {
        check(&priorities, false, moves)?;
    }
}

#[test]
fn an_undisturbed_launch_costs_one_map_write_per_level() {
    let mut world = world(&[2, 1, 0], false);
    world.settle();
    assert!(world.is_undisturbed && world.pod.is_completed);
    assert_eq!((world.map_writes, world.pod_writes), (3, 3));
}

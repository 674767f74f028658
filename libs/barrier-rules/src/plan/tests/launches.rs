//! Whole launches against a small kubelet: any pod, any order of events, a planner without memory.

use proptest::prelude::*;

use super::*;

/// What the cluster holds; the kubelet creates a container when it syncs and its key is there.
struct World {
    case: Case,
    writes: usize,
    nudges: usize,
    /// Containers, in the order in which they came up.
    ups: Vec<Priority>,
}

impl World {
    fn new(priorities: &[i32]) -> Self {
        Self {
            case: Case::new(priorities),
            writes: 0,
            nudges: 0,
            ups: Vec::new(),
        }
    }

    /// Carries out the planned write; false if there is none.
    fn manage(&mut self) -> bool {
        let Some(write) = self.case.plan().write else {
            return false;
        };
        match write {
            Write::CreateMap { keys } => {
                self.writes += 1;
                let map = BarrierMap {
                    keys,
                    ..barrier_map(&[])
                };
                self.case.map = Some(Some(map));
            }
            Write::AddKeys { keys, .. } => {
                self.writes += 1;
                if let Some(Some(map)) = &mut self.case.map {
                    map.keys.extend(keys);
                }
            }
            Write::Nudge { level, completes } => {
                self.nudges += 1;
                self.case.pod = self.case.pod.clone().with(|pod| {
                    pod.told = Some(level);
                    pod.is_completed |= completes;
                });
            }
            Write::DeleteMap { .. } | Write::EmptyMap { .. } => self.case.map = Some(None),
        }
        true
    }

    /// The kubelet syncs container `index`: it starts if its key is there, and is up later or at once.
    fn sync(&mut self, index: usize, is_ready: bool) {
        let pod = self.case.pod.clone().build();
        let Some(container) = pod.containers.get(index) else {
            return;
        };
        let is_open =
            matches!(&self.case.map, Some(Some(map)) if map.keys.contains(&container.priority));
        let known = pod.pod.container(&container.name);
        let was_up = known.is_some_and(|status| status.is_ready);
        let has_begun = known.is_some_and(|status| status.container_id.is_some());
        if was_up || (!is_open && !has_begun) {
            return;
        }
        if is_ready {
            self.ups.push(container.priority);
        }
        let builder = self.case.pod.clone();
        self.case.pod = builder.shows(container.name.as_str(), running(), is_ready);
    }
}

proptest! {
    #[test]
    fn every_launch_ends_in_order_and_within_its_writes(
        priorities in prop::collection::vec(-3..3, 1..7),
        syncs in prop::collection::vec((0_usize..7, any::<bool>(), any::<bool>()), 0..60),
    ) {
        let mut world = World::new(&priorities);
        // Any order: syncs without a manager, managers that write once and are gone.
        for (index, is_ready, has_manager) in syncs {
            if has_manager {
                world.manage();
            }
            world.sync(index, is_ready);
        }
        // From any such state a manager and a kubelet that continue reach the end.
        for _ in 0..20 {
            while world.manage() {}
            for index in 0..priorities.len() {
                world.sync(index, true);
            }
        }
        prop_assert!(world.case.pod.clone().build().is_completed);
        prop_assert_eq!(world.case.plan().stage, Stage::Launched);
        prop_assert_eq!(world.ups.len(), priorities.len());
        prop_assert!(world.ups.is_sorted_by(|above, below| above >= below), "{:?}", world.ups);
        let count = levels(&world.case.pod.clone().build()).len();
        prop_assert!(world.writes <= count, "{} writes", world.writes);
        prop_assert!(world.nudges <= count, "{} nudges", world.nudges);
    }

    #[test]
    fn a_key_is_there_only_when_all_above_are_up(
        priorities in prop::collection::vec(-3..3, 1..7),
        up in prop::collection::vec(any::<bool>(), 7),
    ) {
        let mut case = Case::new(&priorities);
        for index in (0..priorities.len()).filter(|index| up[*index]) {
            case = case.up(&format!("c{index}"));
        }
        let Some(Write::CreateMap { keys }) = case.plan().write else {
            return Err(TestCaseError::fail("no map is made"));
        };
        for key in &keys {
            let above = priorities.iter().enumerate().filter(|(_, above)| Priority::new(**above) > *key);
            for (index, _) in above {
                prop_assert!(up[index], "{key} is open before c{index} is up");
            }
        }
    }
}

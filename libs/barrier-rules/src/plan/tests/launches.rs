//! Whole launches against a small kubelet: any pod, any order of events, a manager that forgets everything at any time.

use proptest::prelude::*;

use super::*;

/// What the cluster holds; the kubelet creates a container when it looks and its key is there.
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

    /// What the manager wants written, written; false when there is nothing.
    fn manage(&mut self) -> bool {
        let Some(write) = self.case.plan().write else {
            return false;
        };
        match write {
            Write::CreateMap { keys } => {
                self.writes += 1;
                let map = BarrierMap {
                    uid: "m".to_owned(),
                    version: "7".to_owned(),
                    owners: vec!["u".into()],
                    is_labelled: true,
                    is_being_deleted: false,
                    keys,
                };
                self.case.map = MapView::Present(map);
            }
            Write::AddKeys { keys, .. } => {
                self.writes += 1;
                if let MapView::Present(map) = &mut self.case.map {
                    map.keys.extend(keys);
                }
            }
            Write::Nudge { level, completes } => {
                self.nudges += 1;
                self.case.pod.told = Some(level);
                self.case.pod.is_completed |= completes;
            }
            Write::DeleteMap { .. } | Write::EmptyMap { .. } => self.case.map = MapView::Absent,
        }
        true
    }

    /// The kubelet looks at container `index`: it starts where its key is there, and is up later or at once.
    fn look(&mut self, index: usize, is_ready: bool) {
        let Some(container) = self.case.pod.containers.get(index).cloned() else {
            return;
        };
        let is_open = matches!(&self.case.map, MapView::Present(map) if map.keys.contains(&container.priority));
        let known = self.case.pod.pod.container(&container.name);
        let was_up = known.is_some_and(|status| status.is_ready);
        let has_begun = known.is_some_and(|status| status.container_id.is_some());
        if was_up || (!is_open && !has_begun) {
            return;
        }
        if is_ready {
            self.ups.push(container.priority);
        }
        let statuses = &mut self.case.pod.pod.containers;
        statuses.retain(|status| status.name != container.name);
        statuses.push(status(container.name.as_str(), running(), is_ready));
    }
}

proptest! {
    #[test]
    fn every_launch_ends_in_order_and_within_its_writes(
        priorities in prop::collection::vec(-3..3, 1..7),
        looks in prop::collection::vec((0_usize..7, any::<bool>(), any::<bool>()), 0..60),
    ) {
        let mut world = World::new(&priorities);
        // Any order of things: looks without a manager, managers that act once and are gone.
        for (index, is_ready, has_manager) in looks {
            if has_manager {
                world.manage();
            }
            world.look(index, is_ready);
        }
        // From wherever that led, a manager and a kubelet that go on come to the end.
        for _ in 0..20 {
            while world.manage() {}
            for index in 0..priorities.len() {
                world.look(index, true);
            }
        }
        prop_assert!(world.case.pod.is_completed);
        prop_assert_eq!(world.case.plan().stage, Stage::Launched);
        prop_assert_eq!(world.ups.len(), priorities.len());
        prop_assert!(world.ups.is_sorted_by(|above, below| above >= below), "{:?}", world.ups);
        let count = levels(&world.case.pod).len();
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

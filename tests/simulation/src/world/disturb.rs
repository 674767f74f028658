//! Disturbances that last: cut off nodes, two leaders, clock steps.
//!
//! Owns their plan for a history, and their end.

use std::time::Duration;

use jiff::SignedDuration;
use rand::RngExt;

use super::{FAULTS_UNTIL, World, ms};
use crate::{
    Mode,
    api_server::Precondition,
    fault::Fault,
    shell::{executor::Executor, manager::Manager, scheduler::Scheduler},
};

const KINDS: [Fault; 12] = [
    Fault::BusAway,
    Fault::NodeAway,
    Fault::RuntimeAway,
    Fault::WatchRestart,
    Fault::TwoLeaders,
    Fault::LeaderChange,
    Fault::ForeignWrite,
    Fault::ContainerEnds,
    Fault::Frozen,
    Fault::ExecutorUpdate,
    Fault::FrozenLong,
    Fault::ClockStep,
];

/// Most disturbances of a history.
const MOST: u64 = 8;

/// How often a node publishes its presence.
const PRESENCE_EVERY: Duration = ms(10_000);

// === impl World ===

impl World {
    pub(super) fn plan_disturbances(&mut self) {
        for node in 0..self.executors.len() {
            self.publish_presences(node);
        }
        if self.options.mode != Mode::Faults {
            return;
        }
        if self.may_set_clocks() {
            self.set_all_clocks();
        }
        for _ in 0..self.between(0, MOST).as_millis() {
            let at = self.between(0, 60_000);
            let pick = self.between(0, KINDS.len() as u64 - 1).as_millis();
            let kind = KINDS[usize::try_from(pick).unwrap_or(0)];
            let is_wanted = match kind {
                Fault::ClockStep => self.may_set_clocks(),
                kind => !kind.is_trigger() || self.options.has(kind),
            };
            if is_wanted {
                self.after(at, move |world| {
                    world.coverage.count("fault", kind.name());
                    world.trace(|_| format!("disturbance: {kind:?}"));
                    world.disturb(kind);
                });
            }
        }
        self.after(FAULTS_UNTIL, Self::end_disturbances);
    }

    fn may_set_clocks(&self) -> bool {
        !self.options.scenario.is_timed || self.options.has(Fault::ClockStep)
    }

    /// No two machines have the same time: they differ by up to five seconds.
    fn set_all_clocks(&mut self) {
        let mut offset = || {
            let ahead = self.rng.random_range(-5_000..5_000);
            SignedDuration::from_millis(ahead)
        };
        for scheduler in &mut self.schedulers {
            scheduler.host.wall_offset = offset();
        }
        for executor in &mut self.executors {
            executor.host.wall_offset = offset();
        }
        self.manager.host.wall_offset = offset();
    }

    fn publish_presences(&mut self, node: usize) {
        self.publish_presence(node);
        if self.now < FAULTS_UNTIL {
            self.after(PRESENCE_EVERY, move |world| world.publish_presences(node));
        }
    }

    fn pick_node(&mut self) -> usize {
        let last = self.executors.len() as u64 - 1;
        usize::try_from(self.between(0, last).as_millis()).unwrap_or(0)
    }

    fn disturb(&mut self, kind: Fault) {
        let wait = self.between(500, 90_000);
        let node = self.pick_node();
        match kind {
            Fault::BusAway => {
                self.is_bus_away = true;
                self.after(wait, |world| world.is_bus_away = false);
            }
            Fault::NodeAway => {
                self.executors[node].is_away = true;
                self.after(wait, move |world| world.executors[node].is_away = false);
            }
            Fault::RuntimeAway => {
                self.executors[node].is_runtime_away = true;
                let wait = wait / 4;
                self.after(wait, move |world| {
                    world.executors[node].is_runtime_away = false;
                });
            }
            Fault::WatchRestart => self.restart_a_watch(),
            Fault::TwoLeaders => self.change_leader(true),
            Fault::LeaderChange => self.change_leader(false),
            Fault::ForeignWrite => self.write_to_something(),
            Fault::ContainerEnds => self.end_a_container(),
            Fault::ExecutorUpdate => self.update_an_executor(node),
            Fault::Frozen => {
                let length = self.between(200, 4_000);
                self.freeze_a_process(length);
            }
            Fault::FrozenLong => {
                let length = self.between(20_000, 120_000);
                self.freeze_a_process(length);
            }
            Fault::ClockStep => self.step_a_clock(),
            _ => {}
        }
    }

    /// The replica that does not lead begins to; the other one ends, in a while if both are to lead.
    fn change_leader(&mut self, is_overlapping: bool) {
        let before = usize::from(!self.is_up::<Scheduler>(0));
        let next = 1 - before;
        let wait = if is_overlapping {
            self.start::<Scheduler>(next);
            self.between(100, 10_000)
        } else {
            ms(0)
        };
        self.after(wait, move |world| {
            if world.is_up::<Scheduler>(before) {
                world.kill::<Scheduler>(before);
            }
            if !world.is_up::<Scheduler>(next) {
                let wait = world.between(0, 15_000);
                world.after(wait, move |world| world.lead_if_none_does(next));
            }
        });
    }

    pub(crate) fn lead_if_none_does(&mut self, next: usize) {
        if !self.is_up::<Scheduler>(0) && !self.is_up::<Scheduler>(1) {
            self.start::<Scheduler>(next);
        }
    }

    /// Somebody else writes to a request, so that its version is another.
    fn write_to_something(&mut self) {
        let keys: Vec<_> = self.api.crrs.keys().cloned().collect();
        for key in keys {
            let touched = self.api.change_crr(&key, &Precondition::default(), |_| {});
            debug_assert!(touched.is_ok());
        }
    }

    fn end_a_container(&mut self) {
        let sandboxes = self.sandboxes.values();
        let containers = sandboxes.flat_map(|sandbox| &sandbox.containers);
        let alive: Vec<_> = containers
            .filter(|container| container.is_alive())
            .filter_map(|container| container.newest.as_ref())
            .map(|newest| newest.id.clone())
            .collect();
        if !alive.is_empty() {
            let pick = self.between(0, alive.len() as u64 - 1).as_millis();
            self.end_container(&alive[usize::try_from(pick).unwrap_or(0)], 1);
        }
    }

    fn update_an_executor(&mut self, node: usize) {
        let life = self.life::<Executor>(node);
        self.deliver::<Executor>(node, life, node_rules::Event::DrainBegun);
        let wait = self.between(0, 5_000);
        self.after(wait, move |world| {
            if world.is_alive::<Executor>(node, life) {
                world.kill::<Executor>(node);
            }
        });
    }

    fn freeze_a_process(&mut self, length: Duration) {
        let until = self.now + length;
        let node = self.pick_node();
        let leader = usize::from(!self.is_up::<Scheduler>(0));
        match self.between(0, 3).as_millis() {
            0 | 1 => self.host::<Scheduler>(leader).frozen_until = until,
            2 => self.host::<Executor>(node).frozen_until = until,
            _ => self.host::<Manager>(0).frozen_until = until,
        }
    }

    /// The wall clock of one machine is set, by up to twenty minutes.
    fn step_a_clock(&mut self) {
        let step = SignedDuration::try_from(self.between(0, 2_400_000)).unwrap_or_default();
        let offset = step - SignedDuration::from_secs(1_200);
        let node = self.pick_node();
        match self.between(0, 3).as_millis() {
            0 => self.host::<Scheduler>(0).wall_offset = offset,
            1 => self.host::<Scheduler>(1).wall_offset = offset,
            2 => self.host::<Executor>(node).wall_offset = offset,
            _ => self.host::<Manager>(0).wall_offset = offset,
        }
    }

    /// From now on nothing goes wrong: everything is up, and one replica leads.
    fn end_disturbances(&mut self) {
        self.is_bus_away = false;
        for node in 0..self.executors.len() {
            self.executors[node].is_away = false;
            self.executors[node].is_runtime_away = false;
            self.start::<Executor>(node);
        }
        self.start::<Manager>(0);
        if self.is_up::<Scheduler>(0) && self.is_up::<Scheduler>(1) {
            self.kill::<Scheduler>(1);
        }
        self.lead_if_none_does(0);
    }
}

//! A process around a machine: it lives, crashes and is started again, and has its own clocks.
//!
//! Owns the loop that every service is: take an event, carry the effects out, wait for the deadline. Before and after each
//! effect is a crash point.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use model::time::{Monotonic, Now};

use super::{World, ms};
use crate::{Mode, Process, checks::Violation, fault::Fault};

/// A machine that asks to be woken at once, so often without time passing, is in a hot loop.
const MOST_TICKS_AT_ONCE: u32 = 20;

/// A process's machine, clocks and lives.
#[derive(Debug)]
pub(crate) struct Host<M> {
    /// `None` while the process is down.
    pub(crate) machine: Option<M>,
    /// Counts lives: what an earlier life waited for is dropped.
    pub(crate) life: u32,
    /// How far the wall clock of its machine is ahead of the API server's.
    pub(crate) wall_offset: SignedDuration,
    /// What its monotonic clock shows at the start of the history.
    origin: Duration,
    /// Until then it stands still.
    pub(crate) frozen_until: Duration,
    wake: Option<Duration>,
    ticks_at: (Duration, u32),
}

/// A service around one of the machines.
pub(crate) trait Shell: Sized + 'static {
    type Machine;
    type Event: std::fmt::Debug + 'static;
    type Effect: std::fmt::Debug;
    const PROCESS: Process;
    const CRASH: Fault;

    fn of(world: &mut World, index: usize) -> &mut Self;
    fn host(&mut self) -> &mut Host<Self::Machine>;
    /// Makes the machine and returns its first event, if it has one.
    fn start(&mut self) -> Option<Self::Event>;
    fn tick() -> Self::Event;
    fn step(machine: &mut Self::Machine, event: Self::Event, now: Now) -> Vec<Self::Effect>;
    fn next_deadline(machine: &Self::Machine, now: Now) -> Option<Monotonic>;
    fn carry_out(world: &mut World, index: usize, effect: Self::Effect);
    /// For traces.
    fn brief_event(event: &Self::Event) -> String {
        format!("{event:?}")
    }

    /// For traces.
    fn brief_effect(effect: &Self::Effect) -> String {
        format!("{effect:?}")
    }

    fn on_started(world: &mut World, index: usize);
    fn on_crashed(world: &mut World, index: usize);
}

// === impl Host ===

impl<M> Host<M> {
    pub(crate) fn new(origin: u64) -> Self {
        Self {
            machine: None,
            life: 0,
            wall_offset: SignedDuration::ZERO,
            origin: ms(origin),
            frozen_until: Duration::ZERO,
            wake: None,
            ticks_at: (Duration::ZERO, 0),
        }
    }

    fn now(&self, at: Duration) -> Now {
        Now {
            wall: true_wall(at) + self.wall_offset,
            monotonic: Monotonic::new(self.origin + at),
        }
    }
}

/// The API server's clock.
pub(crate) fn true_wall(at: Duration) -> Timestamp {
    testkit::wall(0) + at
}

// === impl World ===

impl World {
    pub(crate) fn host<S: Shell>(&mut self, index: usize) -> &mut Host<S::Machine> {
        S::of(self, index).host()
    }

    pub(crate) fn life<S: Shell>(&mut self, index: usize) -> u32 {
        self.host::<S>(index).life
    }

    pub(crate) fn is_up<S: Shell>(&mut self, index: usize) -> bool {
        self.host::<S>(index).machine.is_some()
    }

    pub(crate) fn start<S: Shell>(&mut self, index: usize) {
        if self.is_up::<S>(index) {
            return;
        }
        self.trace(|_| format!("{:?} {index} starts", S::PROCESS));
        let shell = S::of(self, index);
        let first = shell.start();
        let host = shell.host();
        host.life += 1;
        host.frozen_until = Duration::ZERO;
        host.wake = None;
        let life = host.life;
        if let Some(first) = first {
            self.deliver::<S>(index, life, first);
        }
        if self.is_alive::<S>(index, life) {
            S::on_started(self, index);
        }
    }

    /// Ends a process without notice.
    pub(crate) fn kill<S: Shell>(&mut self, index: usize) {
        self.trace(|_| format!("{:?} {index} is killed", S::PROCESS));
        let host = self.host::<S>(index);
        host.machine = None;
        host.life += 1;
        self.close_watches(S::PROCESS, index);
        S::on_crashed(self, index);
    }

    pub(crate) fn is_alive<S: Shell>(&mut self, index: usize, life: u32) -> bool {
        let host = self.host::<S>(index);
        host.life == life && host.machine.is_some()
    }

    /// Gives an event to a machine, if its process still lives, and carries the effects out.
    pub(crate) fn deliver<S: Shell>(&mut self, index: usize, life: u32, event: S::Event) {
        if !self.is_alive::<S>(index, life) {
            return;
        }
        let thaws_in = self.host::<S>(index).frozen_until.saturating_sub(self.now);
        if !thaws_in.is_zero() {
            return self.after(thaws_in, move |world| {
                world.deliver::<S>(index, life, event);
            });
        }
        self.trace(|_| format!("{:?} {index} <- {}", S::PROCESS, S::brief_event(&event)));
        let at = self.now;
        let host = self.host::<S>(index);
        let now = host.now(at);
        let Some(machine) = &mut host.machine else {
            return;
        };
        for effect in S::step(machine, event, now) {
            if self.crash_point::<S>(index) {
                return;
            }
            self.trace(|_| format!("{:?} {index} -> {}", S::PROCESS, S::brief_effect(&effect)));
            S::carry_out(self, index, effect);
            if self.crash_point::<S>(index) {
                return;
            }
        }
        self.wait::<S>(index);
    }

    /// Has the process woken at its machine's deadline.
    fn wait<S: Shell>(&mut self, index: usize) {
        let at = self.now;
        let host = self.host::<S>(index);
        let now = host.now(at);
        let deadline = host
            .machine
            .as_ref()
            .and_then(|machine| S::next_deadline(machine, now));
        let Some(deadline) = deadline else {
            return;
        };
        let wake = at + (deadline - now.monotonic);
        if host.wake.is_some_and(|planned| planned <= wake) {
            return;
        }
        host.wake = Some(wake);
        let life = host.life;
        self.after(wake - at, move |world| {
            let host = world.host::<S>(index);
            if host.life != life || host.wake != Some(wake) {
                return;
            }
            host.wake = None;
            let (last, count) = host.ticks_at;
            host.ticks_at = (wake, if last == wake { count + 1 } else { 0 });
            if host.ticks_at.1 > MOST_TICKS_AT_ONCE {
                world.fail(Violation::HotLoop(S::PROCESS));
                return;
            }
            world.deliver::<S>(index, life, S::tick());
        });
    }

    /// True if the process dies here.
    fn crash_point<S: Shell>(&mut self, index: usize) -> bool {
        let points = &mut self.ledger.crash_points;
        let count = points.entry(S::PROCESS).or_default();
        *count += 1;
        let is_here = self.options.mode == Mode::CrashAt(S::PROCESS, *count);
        if is_here || self.fault(S::CRASH) {
            self.kill::<S>(index);
            return true;
        }
        false
    }
}

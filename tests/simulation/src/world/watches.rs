//! Watches of the API server: each shows a list and then every change, in order and late.
//!
//! Owns the lag, new lists in the middle, and lists that show an earlier state. What a client makes of it is in `shell/`.

use std::{collections::BTreeMap, time::Duration};

use model::ids::PodKey;

use super::{World, ms};
use crate::{
    Process,
    api_server::{Change, Object},
    fault::Fault,
};

/// How far behind a stale list is at most.
const STALE_BY: Duration = ms(3_000);

/// Longest delay of one event.
const LONGEST_LAG: u64 = 3_000;

/// Which objects a watch shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selector {
    Crrs,
    Pod(PodKey),
    LaunchPods,
    /// Labelled ConfigMaps.
    Maps,
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub(crate) enum Shown {
    ListBegun,
    Object(Object),
    Gone(Object),
    ListEnded,
}

type Deliver = fn(&mut World, usize, u32, Shown, &Selector);

#[derive(Clone, Debug)]
struct Watch {
    process: Process,
    index: usize,
    life: u32,
    selector: Selector,
    deliver: Deliver,
    /// How many writes it has shown, or passed over.
    position: usize,
    /// Counts lists.
    lists: u32,
    /// Its next event is on the way.
    is_moving: bool,
}

/// All open watches.
#[derive(Default)]
pub(crate) struct Watches {
    open: BTreeMap<u64, Watch>,
    /// How many writes all watches know of.
    pumped: usize,
}

// === impl Selector ===

impl Selector {
    fn selects(&self, object: &Object) -> bool {
        match (self, object) {
            (Self::Crrs, Object::Crr(_)) => true,
            (Self::Pod(wanted), Object::Pod(pod)) => pod.pod.key == *wanted,
            (Self::LaunchPods, Object::Pod(pod)) => !pod.containers.is_empty(),
            (Self::Maps, Object::Map(_, map)) => map.is_labelled,
            (
                Self::Crrs | Self::Pod(_) | Self::LaunchPods | Self::Maps,
                Object::Crr(_) | Object::Pod(_) | Object::Map(..),
            ) => false,
        }
    }
}

// === impl World ===

impl World {
    /// Opens a watch for a life of a process.
    pub(crate) fn open_watch(
        &mut self,
        process: (Process, usize, u32),
        selector: Selector,
        deliver: Deliver,
    ) {
        let (process, index, life) = process;
        let id = self.next_number();
        let watch = Watch {
            process,
            index,
            life,
            selector,
            deliver,
            position: 0,
            lists: 0,
            is_moving: true,
        };
        self.watches.open.insert(id, watch);
        self.list_soon(id);
    }

    pub(crate) fn close_watches(&mut self, process: Process, index: usize) {
        let open = &mut self.watches.open;
        open.retain(|_, watch| (watch.process, watch.index) != (process, index));
    }

    pub(crate) fn close_watch(&mut self, process: Process, index: usize, selector: &Selector) {
        self.watches.open.retain(|_, watch| {
            (watch.process, watch.index) != (process, index) || watch.selector != *selector
        });
    }

    /// Has one open watch begin again with a list.
    pub(crate) fn restart_a_watch(&mut self) {
        let ids: Vec<_> = self.watches.open.keys().copied().collect();
        if !ids.is_empty() {
            let pick = self.between(0, ids.len() as u64 - 1).as_millis();
            self.list_soon(ids[usize::try_from(pick).unwrap_or(0)]);
        }
    }

    fn list_soon(&mut self, id: u64) {
        let Some(watch) = self.watches.open.get_mut(&id) else {
            return;
        };
        watch.lists += 1;
        watch.is_moving = true;
        let lists = watch.lists;
        let wait = self.between(2, 60);
        self.after(wait, move |world| world.list(id, lists));
    }

    fn list(&mut self, id: u64, lists: u32) {
        let Some(watch) = self.watches.open.get(&id).cloned() else {
            return;
        };
        if watch.lists != lists {
            return;
        }
        let may_be_stale = match watch.selector {
            Selector::Pod(_) => self.options.has(Fault::StalePod),
            Selector::Crrs | Selector::LaunchPods | Selector::Maps => true,
        };
        let mut position = self.api.log.len();
        if may_be_stale && self.fault(Fault::StaleList) {
            position = self.stale_position();
        }
        let state = self.api.state_after(position);
        let objects = state.into_iter().filter(|it| watch.selector.selects(it));
        let objects = objects.cloned().map(Shown::Object);
        let mut events = vec![Shown::ListBegun];
        events.extend(objects);
        events.push(Shown::ListEnded);
        for event in events {
            (watch.deliver)(self, watch.index, watch.life, event, &watch.selector);
        }
        if let Some(watch) = self.watches.open.get_mut(&id)
            && watch.lists == lists
        {
            watch.position = position;
            watch.is_moving = false;
            self.pump(id);
        }
    }

    /// The number of writes up to a moment some seconds ago.
    fn stale_position(&mut self) -> usize {
        let by = match self.options.has(Fault::StalePod) {
            true => self.between(0, 60_000),
            false => self.between(0, 3_000).min(STALE_BY),
        };
        let until = self.now.saturating_sub(by);
        self.api.log.partition_point(|change| change.at <= until)
    }

    /// Has every watch go on that has something to show.
    pub(crate) fn pump_watches(&mut self) {
        if self.watches.pumped == self.api.log.len() {
            return;
        }
        self.watches.pumped = self.api.log.len();
        let ids: Vec<_> = self.watches.open.keys().copied().collect();
        for id in ids {
            self.pump(id);
        }
    }

    fn pump(&mut self, id: u64) {
        let Some(watch) = self.watches.open.get_mut(&id) else {
            return;
        };
        if watch.is_moving {
            return;
        }
        let log = &self.api.log[watch.position..];
        let next = log
            .iter()
            .position(|change| watch.selector.selects(&change.object));
        let Some(next) = next else {
            watch.position = self.api.log.len();
            return;
        };
        watch.position += next + 1;
        watch.is_moving = true;
        let lists = watch.lists;
        let change = self.api.log[watch.position - 1].clone();
        let wait = if self.fault(Fault::WatchLag) {
            self.between(200, LONGEST_LAG)
        } else {
            self.between(1, 30)
        };
        self.after(wait, move |world| world.show(id, lists, change));
    }

    fn show(&mut self, id: u64, lists: u32, change: Change) {
        let Some(watch) = self.watches.open.get_mut(&id) else {
            return;
        };
        if watch.lists != lists {
            return; // It lists again.
        }
        watch.is_moving = false;
        let watch = watch.clone();
        let event = if change.is_deleted {
            Shown::Gone(change.object)
        } else {
            Shown::Object(change.object)
        };
        (watch.deliver)(self, watch.index, watch.life, event, &watch.selector);
        self.pump(id);
    }
}

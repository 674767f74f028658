//! The executor's shell in the simulated world: what `node-executor` does around `node-rules`.

use std::collections::BTreeMap;

use model::ids::OrderId;
use node_rules::{Machine, Record, ReplyToken, Settings};

/// The node's process and its disk.
pub(crate) struct Executor {
    /// `None` while it is down.
    pub(crate) machine: Option<Machine>,
    /// Counts lives, so that answers to an earlier one are dropped.
    pub(crate) life: u32,
    /// The journal: survives every crash.
    journal: BTreeMap<OrderId, Record>,
    /// Who waits for an answer: the asking scheduler's life, and what it asked.
    askers: BTreeMap<ReplyToken, (u32, OrderId)>,
}

impl Executor {
    pub(crate) fn new() -> Self {
        Self {
            machine: None,
            life: 0,
            journal: BTreeMap::new(),
            askers: BTreeMap::new(),
        }
    }

    pub(crate) fn start(&mut self) -> Vec<Record> {
        self.machine = Some(Machine::new(Settings::default()));
        self.journal.values().cloned().collect()
    }

    pub(crate) fn crash(&mut self) {
        self.machine = None;
        self.life += 1;
    }

    pub(crate) fn note_asker(&mut self, scheduler_life: u32, order: &OrderId) -> ReplyToken {
        let token = ReplyToken(self.askers.keys().last().map_or(0, |last| last.0 + 1));
        self.askers.insert(token, (scheduler_life, order.clone()));
        token
    }

    pub(crate) fn asker(&self, token: ReplyToken) -> Option<&(u32, OrderId)> {
        self.askers.get(&token)
    }

    pub(crate) fn store(&mut self, record: Record) {
        self.journal.insert(record.order.id.clone(), record);
    }

    pub(crate) fn forget(&mut self, order: &OrderId) {
        self.journal.remove(order);
    }
}

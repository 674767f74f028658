//! The bus: orders and answers, reports and acknowledgements, starts and presences.
//!
//! Owns loss, repetition, delay and reordering (docs/protocol.md). Order and report are requests with a time limit; the
//! others are publications.

use std::time::Duration;

use crr_rules::Event as CrrEvent;
use model::{
    launch::Started,
    order::{Answer, Report, Sending},
};
use node_rules::Event as NodeEvent;
use order_rules::{ANSWER_WITHIN, Silence};

use super::{World, ms};
use crate::{
    fault::Fault,
    shell::{
        executor::{Executor, node_name},
        manager::Manager,
        scheduler::Scheduler,
    },
};

/// How long a node waits for the acknowledgement of a report.
const ACKNOWLEDGED_WITHIN: Duration = ms(5_000);

/// The faults that one kind of message can meet, and its longest delay.
struct Passage {
    lost: Fault,
    twice: Fault,
    late: Fault,
    longest: u64,
}

const ORDER: Passage = Passage {
    lost: Fault::OrderLost,
    twice: Fault::OrderTwice,
    late: Fault::OrderLate,
    longest: 4_000,
};

const REPORT: Passage = Passage {
    lost: Fault::ReportLost,
    twice: Fault::ReportTwice,
    late: Fault::ReportLate,
    longest: 40_000,
};

// === impl World ===

impl World {
    /// When the copies of a message arrive.
    fn copies(&mut self, passage: &Passage) -> Vec<Duration> {
        if self.is_bus_away || self.fault(passage.lost) {
            return Vec::new();
        }
        let count = if self.fault(passage.twice) { 2 } else { 1 };
        let mut copies = Vec::new();
        for _ in 0..count {
            copies.push(if self.fault(passage.late) {
                self.between(500, passage.longest)
            } else {
                self.between(1, 50)
            });
        }
        copies
    }

    /// Sends an order; the scheduler gets an answer or silence.
    pub(crate) fn send_order(&mut self, scheduler: usize, node: usize, sending: Sending) {
        let request = self.next_number();
        let life = self.life::<Scheduler>(scheduler);
        let order = sending.order.id.clone();
        self.schedulers[scheduler].asked.insert(request);
        let mut silence_after = ANSWER_WITHIN;
        if self.is_bus_away || !self.can_hear(node) {
            silence_after = self.between(1, 100);
        } else {
            for wait in self.copies(&ORDER) {
                let sending = sending.clone();
                self.after(wait, move |world| {
                    world.order_arrives(node, sending, (scheduler, life, request));
                });
            }
        }
        self.after(silence_after, move |world| {
            let silence = if world.is_bus_away {
                Silence::Bus
            } else {
                Silence::Node
            };
            let answer = Err(silence);
            world.answered(
                scheduler,
                life,
                request,
                CrrEvent::Answered {
                    order,
                    result: answer,
                },
            );
        });
    }

    fn can_hear(&mut self, node: usize) -> bool {
        self.is_up::<Executor>(node) && !self.executors[node].is_away
    }

    fn order_arrives(&mut self, node: usize, sending: Sending, from: (usize, u32, u64)) {
        if !self.can_hear(node) {
            return;
        }
        let reply = node_rules::ReplyToken(self.next_number());
        let executor = &mut self.executors[node];
        let order = sending.order.id.clone();
        executor.requesters.insert(reply, (from, order));
        let event = NodeEvent::Ordered {
            sending,
            traceparent: None,
            reply,
        };
        let life = self.life::<Executor>(node);
        self.deliver::<Executor>(node, life, event);
    }

    pub(crate) fn send_answer(
        &mut self,
        node: usize,
        reply: node_rules::ReplyToken,
        answer: Answer,
    ) {
        let Some(((scheduler, life, request), order)) =
            self.executors[node].requesters.remove(&reply)
        else {
            return;
        };
        if self.executors[node].is_away || self.is_bus_away || self.fault(Fault::AnswerLost) {
            return;
        }
        let wait = if self.fault(Fault::AnswerLate) {
            self.between(1_000, 40_000)
        } else {
            self.between(1, 50)
        };
        self.after(wait, move |world| {
            let result = Ok(answer);
            world.answered(
                scheduler,
                life,
                request,
                CrrEvent::Answered { order, result },
            );
        });
    }

    /// The first answer to a request counts; a later one is dropped.
    fn answered(&mut self, scheduler: usize, life: u32, request: u64, event: CrrEvent) {
        if self.schedulers[scheduler].asked.remove(&request) {
            self.deliver::<Scheduler>(scheduler, life, event);
        }
    }

    /// Sends a report to a replica that believes to lead; the node gets an acknowledgement or not.
    pub(crate) fn send_report(&mut self, node: usize, report: Report) {
        let life = self.life::<Executor>(node);
        let request = self.next_number();
        self.executors[node].reporting.insert(request);
        let (order, sequence) = (report.order.clone(), report.sequence);
        if !self.executors[node].is_away {
            for wait in self.copies(&REPORT) {
                let report = report.clone();
                self.after(wait, move |world| {
                    world.report_arrives(node, life, request, report);
                });
            }
        }
        self.after(ACKNOWLEDGED_WITHIN, move |world| {
            if world.executors[node].reporting.remove(&request) {
                let event = NodeEvent::ReportFailed { order, sequence };
                world.deliver::<Executor>(node, life, event);
            }
        });
    }

    fn report_arrives(&mut self, node: usize, node_life: u32, request: u64, report: Report) {
        let leaders: Vec<_> = (0..self.schedulers.len())
            .filter(|index| self.is_up::<Scheduler>(*index))
            .collect();
        let Some(first) = leaders.first() else {
            return;
        };
        let leader = if self.is_likely(0.5) {
            *first
        } else {
            leaders[leaders.len() - 1]
        };
        let sender = if self.fault(Fault::ReportForged) {
            node_name(self.executors.len())
        } else {
            node_name(node)
        };
        let reply = crr_rules::ReplyToken(request);
        let known = (node, node_life, report.order.clone(), report.sequence);
        self.schedulers[leader].reports.insert(request, known);
        let event = CrrEvent::Reported {
            report: Box::new(report),
            node: sender,
            reply,
        };
        let life = self.life::<Scheduler>(leader);
        self.deliver::<Scheduler>(leader, life, event);
    }

    pub(crate) fn acknowledge(&mut self, scheduler: usize, request: u64) {
        let Some((node, life, order, sequence)) =
            self.schedulers[scheduler].reports.remove(&request)
        else {
            return;
        };
        if self.is_bus_away
            || self.executors[node].is_away
            || self.fault(Fault::AcknowledgementLost)
        {
            return;
        }
        let wait = self.between(1, 50);
        self.after(wait, move |world| {
            if world.executors[node].reporting.remove(&request) {
                let event = NodeEvent::ReportAcknowledged { order, sequence };
                world.deliver::<Executor>(node, life, event);
            }
        });
    }

    /// Publishes a start to the barrier-manager.
    pub(crate) fn publish_start(&mut self, node: usize, started: Started) {
        if self.executors[node].is_away || self.fault(Fault::StartLost) {
            return;
        }
        let wait = self.between(1, 50);
        self.after(wait, move |world| {
            let life = world.life::<Manager>(0);
            let node = node_name(node);
            let event = barrier_rules::Event::Started { node, started };
            world.deliver::<Manager>(0, life, event);
        });
    }

    pub(crate) fn publish_presence(&mut self, node: usize) {
        if !self.can_hear(node) || self.is_bus_away {
            return;
        }
        for index in 0..self.schedulers.len() {
            let life = self.life::<Scheduler>(index);
            let event = CrrEvent::PresenceSeen(node_name(node));
            self.deliver::<Scheduler>(index, life, event);
        }
    }
}

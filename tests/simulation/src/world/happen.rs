//! What a moment leads to.
//!
//! Owns the crash points: before and after every effect of scheduler and executor.

use std::time::Duration;

use jiff::Timestamp;
use model::{
    ids::{ContainerId, ContainerName, OrderId},
    order::{Instance, StopOrder, StopReport},
};
use node_rules::{Effect, Event, HookResult, InstanceState, Observed, StopResult};

use super::{Moment, Plant, Violation, World};
use crate::scheduler::{Memory, Wish};

/// The chance of a crash at one crash point.
const CRASH: f64 = 0.04;

/// How long an answer is waited for.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

impl World {
    pub(super) fn happen(&mut self, moment: Moment) {
        match moment {
            Moment::SchedulerStarts => {
                let mut memory = Memory::default();
                memory.see(self.pod.status(self.now), self.now);
                self.scheduler = Some(memory);
                self.advance_scheduler();
            }
            Moment::SchedulerWakes { life } if life == self.scheduler_life => {
                self.advance_scheduler();
            }
            Moment::AnswerIsLate { life, order } if life == self.scheduler_life => {
                self.tell_scheduler(|memory, now| memory.unanswered(&order, now));
            }
            Moment::AnswerArrives {
                life,
                order,
                answer,
            } if life == self.scheduler_life => {
                self.tell_scheduler(|memory, now| memory.answered(&order, answer, now));
            }
            Moment::PodSeen => {
                let pod = self.pod.status(self.now);
                self.tell_scheduler(|memory, now| memory.see(pod, now));
            }
            Moment::ReportArrives { life, report } => self.take_report(life, report),
            Moment::SchedulerWakes { .. }
            | Moment::AnswerIsLate { .. }
            | Moment::AnswerArrives { .. } => {}
            other => self.happen_on_node(other),
        }
    }

    fn happen_on_node(&mut self, moment: Moment) {
        match moment {
            Moment::ExecutorStarts => {
                let records = self.executor.start();
                self.tell_executor(Event::Recovered { records });
            }
            Moment::OrderArrives { life, order } => self.take_order(life, order),
            Moment::ReportAnswered {
                life,
                order,
                sequence,
                is_taken,
            } => {
                let event = if is_taken {
                    Event::ReportAcknowledged { order, sequence }
                } else {
                    Event::ReportFailed { order, sequence }
                };
                self.happen(Moment::ExecutorEvent { life, event });
            }
            Moment::ExecutorEvent { life, event } if life == self.executor.life => {
                self.tell_executor(event);
            }
            Moment::HookEnds {
                life,
                order,
                container,
            } if life == self.executor.life => {
                *self.hooks_ended.entry(container).or_default() += 1;
                self.tell_executor(Event::HookEnded {
                    order,
                    result: HookResult::Succeeded,
                });
            }
            Moment::ExecutorEvent { .. } | Moment::HookEnds { .. } => {}
            Moment::ContainerExits { name, id } => self.exit(&name, &id),
            Moment::ContainerEndsAlone(name) => {
                let id = self.pod.containers[&name].id.clone();
                self.crashed_alone.push(id.clone());
                self.exit(&name, &id);
            }
            Moment::KubeletRelists(name) => {
                self.pod.restart(&name);
                let delay = self.any(0, 300);
                self.after(delay, Moment::PodSeen);
            }
            other => unreachable!("not on the node: {other:?}"),
        }
    }

    // --- the scheduler ---

    fn tell_scheduler(&mut self, tell: impl FnOnce(&mut Memory, Timestamp)) {
        if let Some(memory) = &mut self.scheduler {
            tell(memory, self.now);
            self.advance_scheduler();
        }
    }

    fn take_report(&mut self, life: u32, report: StopReport) {
        let (order, sequence) = (report.order.clone(), report.sequence);
        let is_taken = self.scheduler.is_some();
        self.tell_scheduler(|memory, _| memory.reported(&report));
        if !self.goes_wrong(0.1) {
            let answer = Moment::ReportAnswered {
                life,
                order,
                sequence,
                is_taken,
            };
            let delay = self.any(0, 20);
            self.after(delay, answer);
        }
    }

    fn advance_scheduler(&mut self) {
        let crr = self.crr.clone();
        let now = self.now;
        let Some(memory) = &mut self.scheduler else {
            return;
        };
        let Wish {
            status,
            send,
            remove_label,
            wake_at,
        } = memory.wish(&crr, now);
        if status.is_none() && send.is_none() && !remove_label {
            let life = self.scheduler_life;
            if let Some(wake_at) = wake_at {
                self.at(wake_at, Moment::SchedulerWakes { life });
            }
            return;
        }
        if self.goes_wrong(CRASH) {
            return self.crash_scheduler(); // before the effect
        }
        if let Some(status) = status {
            self.crr.status = status;
            if let Some(memory) = &mut self.scheduler {
                memory.wrote(now);
            }
        } else if remove_label {
            self.crr.is_labelled_active = false;
        } else if let Some(order) = send {
            let life = self.scheduler_life;
            let id = order.id.clone();
            self.send(&Moment::OrderArrives { life, order });
            self.after(ANSWER_WITHIN, Moment::AnswerIsLate { life, order: id });
        }
        if self.goes_wrong(CRASH) {
            return self.crash_scheduler(); // after it
        }
        self.advance_scheduler();
    }

    // --- the executor ---

    fn take_order(&mut self, life: u32, order: StopOrder) {
        if self.executor.machine.is_none() {
            return; // Nobody listens; the sender hears of it, or its time runs out.
        }
        let reply = self.executor.note_asker(life, &order.id);
        self.tell_executor(Event::Ordered {
            order,
            trace_parent: None,
            reply,
        });
    }

    fn tell_executor(&mut self, event: Event) {
        let Some(machine) = &mut self.executor.machine else {
            return;
        };
        let effects = machine.on_event(event, self.now);
        let deadline = machine.next_deadline();
        for effect in effects {
            if self.goes_wrong(CRASH) {
                return self.crash_executor(); // before the effect
            }
            self.perform(effect);
            if self.goes_wrong(CRASH) {
                return self.crash_executor(); // after it
            }
        }
        if let Some(deadline) = deadline {
            let life = self.executor.life;
            self.at(
                deadline,
                Moment::ExecutorEvent {
                    life,
                    event: Event::Tick,
                },
            );
        }
    }

    fn perform(&mut self, effect: Effect) {
        let life = self.executor.life;
        match effect {
            Effect::Store(record) => self.executor.store(record),
            Effect::Forget(order) => self.executor.forget(&order),
            Effect::Answer { reply, answer } => {
                if let Some((life, order)) = self.executor.asker(reply).cloned() {
                    self.send(&Moment::AnswerArrives {
                        life,
                        order,
                        answer,
                    });
                }
            }
            Effect::Inspect { order, instance } => {
                let observed = self.inspect(&instance);
                let delay = self.any(0, 30);
                let event = Event::Inspected { order, observed };
                self.after(delay, Moment::ExecutorEvent { life, event });
            }
            Effect::RunHook {
                order,
                instance,
                deadline,
                ..
            } => {
                let longest = deadline.max(self.now);
                let longest = longest.duration_since(self.now).as_millis();
                let delay = self.any(0, u64::try_from(longest).unwrap_or(0));
                let container = instance.container;
                if self.hooks_ended.contains_key(&container) {
                    // Its end may have been lost before it was journaled: then it is allowed, once a crash.
                    if self.crashes == 0 {
                        self.break_rule(Violation::HookRanAfterItsEnd {
                            container: container.clone(),
                        });
                    }
                }
                self.after(
                    delay,
                    Moment::HookEnds {
                        life,
                        order,
                        container,
                    },
                );
            }
            Effect::Stop {
                order,
                container_id,
                ..
            } => self.stop(life, order, &container_id),
            Effect::Report(report) => self.send(&Moment::ReportArrives { life, report }),
        }
    }

    fn inspect(&mut self, instance: &Instance) -> Observed {
        if self.goes_wrong(0.05) {
            return Observed::Unavailable {
                message: "the runtime restarts".to_owned(),
            };
        }
        let container = &self.pod.containers[&instance.container];
        let state = if container.is_running {
            InstanceState::Alive
        } else {
            InstanceState::Exited
        };
        let lies = self.has(Plant::NoFence);
        Observed::Newest {
            container_id: if lies {
                instance.container_id.clone()
            } else {
                container.id.clone()
            },
            restart_count: container.restart_count,
            state: if lies { InstanceState::Alive } else { state },
        }
    }

    /// The runtime stops an instance; the answer comes when it has exited.
    fn stop(&mut self, life: u32, order: OrderId, id: &ContainerId) {
        let lies = self.has(Plant::NoFence);
        let named = id.as_str().rsplit_once('-').map_or("", |(name, _)| name);
        let found = self
            .pod
            .containers
            .iter_mut()
            .find(|(name, container)| container.id == *id || (lies && name.as_str() == named));
        let running = found.filter(|(_, container)| container.is_running);
        let mut delay = Duration::ZERO;
        if let Some((name, container)) = running {
            let (name, id) = (name.clone(), container.id.clone());
            let is_first = !std::mem::replace(&mut container.is_stopping, true);
            delay = self.any(10, 2000);
            if is_first {
                if !id.as_str().ends_with("-0") {
                    let container = name.clone();
                    self.break_rule(Violation::ForeignInstanceStopped {
                        container,
                        id: id.clone(),
                    });
                }
                self.stopped_by_us.push((name.clone(), id.clone()));
                self.after(delay, Moment::ContainerExits { name, id });
            }
        }
        let event = Event::StopEnded {
            order,
            result: StopResult::Stopped,
        };
        self.after(delay, Moment::ExecutorEvent { life, event });
    }

    fn exit(&mut self, name: &ContainerName, id: &ContainerId) {
        let Some(container) = self.pod.containers.get_mut(name) else {
            return;
        };
        if container.id != *id || !container.is_running {
            return;
        }
        container.is_running = false;
        let seen = self.any(0, 1000);
        self.after(seen, Moment::PodSeen);
        let relist = seen + self.any(0, 1500);
        self.after(relist, Moment::KubeletRelists(name.clone()));
    }
}

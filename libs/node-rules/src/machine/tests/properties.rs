//! Any events in any order: each requester gets one answer at most, answers follow the journal, the index stays right.

use std::collections::BTreeSet;

use proptest::{prelude::*, sample::select};
use testkit::{removal, removal_id, stop_id};

use super::*;

/// Instances of containers `a` to `d`; two of them share one, so that their stops are in each other's way.
const INSTANCES: [(&str, &str); 4] = [("a", "1"), ("b", "1"), ("c", "2"), ("d", "3")];

/// An event about one of the containers. Its reply token is set by the test.
fn event_of((name, instance): (&str, &str), kind: u8) -> Event {
    let ordered = |order| Event::Ordered {
        sending: Sending { order, attempt: 1 },
        traceparent: None,
        reply: ReplyToken(0),
    };
    let observed = |observed| Event::Inspected {
        order: stop_id(name),
        observed,
    };
    let ended = |result| Event::StopEnded {
        order: stop_id(name),
        result,
    };
    let listed = |state| Event::InstancesListed {
        order: removal_id(name),
        listed: Ok(vec![ListedInstance {
            container_id: instance.into(),
            restart_count: 0,
            created_at: 0,
            state,
        }]),
    };
    let message = "why".to_owned();
    let (order, sequence) = (stop_id(name), 1);
    match kind {
        0 | 1 => ordered(testkit::stop(name, instance)),
        2 => ordered(Order {
            instance: testkit::instance(name, instance),
            ..hooked(name)
        }),
        3 | 4 => ordered(removal(name, instance)),
        5..=7 => observed(newest(instance, InstanceState::Alive)),
        8 => observed(newest(instance, InstanceState::Exited)),
        9 => observed(away()),
        10 => Event::HookEnded {
            order,
            result: HookResult::Succeeded,
        },
        11 => ended(StopResult::Stopped),
        12 => ended(StopResult::Failed { message }),
        13 => ended(broken_pipe()),
        14 => listed(InstanceState::Exited),
        15 => listed(InstanceState::Alive),
        16 => Event::RemovalEnded {
            order: removal_id(name),
            result: Ok(1),
        },
        17 => Event::ReportAcknowledged { order, sequence },
        18 => Event::ReportFailed { order, sequence },
        _ => Event::Tick,
    }
}

/// Answers and records so far.
#[derive(Default)]
struct Witness {
    asked: Vec<OrderId>,
    answered: BTreeSet<ReplyToken>,
    journal: BTreeMap<OrderId, Record>,
}

impl Witness {
    fn take(&mut self, effects: Effects) {
        for record in effects.store {
            self.journal.insert(record.order.id.clone(), record);
        }
        for order in effects.forget {
            assert!(self.journal.remove(&order).is_some());
        }
        for (reply, answer) in effects.answers {
            assert!(self.answered.insert(reply), "{reply:?} answered twice");
            let order = &self.asked[usize::try_from(reply.0).unwrap()];
            let is_removed = matches!(
                answer,
                Answer::Done {
                    outcome: Outcome::Removed { .. },
                    ..
                }
            );
            let needs_record = !matches!(answer, Answer::Refused(_)) && !is_removed;
            assert!(!needs_record || self.journal.contains_key(order));
        }
        for action in effects.actions {
            if let Action::RunHook { order, .. } | Action::Stop { order, .. } = action {
                let record = self.journal.get(&order);
                assert!(record.is_some_and(|record| record.stage != Stage::Queued));
            }
        }
    }
}

proptest! {
    #[test]
    fn answers_once_and_never_before_the_journal(
        steps in prop::collection::vec((select(&INSTANCES[..]), 0_u8..21, 0_u64..20), 0..200),
    ) {
        let mut machine = Machine::new(Settings {
            max_concurrent_stops: 2,
            max_concurrent_removals: 1,
            retention: Duration::from_secs(60),
        });
        let mut witness = Witness::default();
        let mut seconds = 0;
        for (instance, kind, pause) in steps {
            seconds += pause;
            let mut event = event_of(instance, kind);
            if let Event::Ordered { sending, reply, .. } = &mut event {
                *reply = ReplyToken(witness.asked.len() as u64);
                witness.asked.push(sending.order.id.clone());
            }
            witness.take(machine.on_event(event, at(seconds)));

            let mut index = Index::default();
            machine.stops.values().for_each(|stop| index.add(stop));
            prop_assert_eq!(&machine.index, &index);
            prop_assert!(machine.acting() <= 2);
            for record in machine.records() {
                prop_assert_eq!(witness.journal.get(&record.order.id), Some(&record));
            }
        }
    }
}

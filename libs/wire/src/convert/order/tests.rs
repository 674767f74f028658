//! Round trips, and bytes from anywhere.

use model::order_id::{Owner, Task};
use proptest::prelude::*;

use super::*;

fn any_instance() -> impl Strategy<Value = Instance> {
    (
        "[a-z]{1,8}",
        "[a-z.]{1,8}",
        "[a-f0-9-]{1,36}",
        "[a-z]{1,8}",
        "[a-f0-9]{1,64}",
        any::<u32>(),
    )
        .prop_map(
            |(namespace, pod, pod_uid, container, container_id, restart_count)| Instance {
                namespace: namespace.as_str().into(),
                pod: pod.as_str().into(),
                pod_uid: pod_uid.as_str().into(),
                container: container.as_str().into(),
                container_id: container_id.as_str().into(),
                restart_count,
            },
        )
}

fn any_hook() -> impl Strategy<Value = PreStop> {
    let host = || proptest::option::of("[a-z0-9.]{1,12}");
    prop_oneof![
        proptest::collection::vec(".*", 0..4).prop_map(|command| PreStop::Exec { command }),
        (
            any::<bool>(),
            host(),
            any::<u16>(),
            ".*",
            proptest::collection::vec((".*", ".*"), 0..3)
        )
            .prop_map(|(https, host, port, path, headers)| PreStop::HttpGet {
                scheme: if https {
                    HttpScheme::Https
                } else {
                    HttpScheme::Http
                },
                host,
                port,
                path,
                headers,
            }),
        (host(), any::<u16>()).prop_map(|(host, port)| PreStop::TcpSocket { host, port }),
        any::<u32>().prop_map(|milliseconds| PreStop::Sleep {
            duration: Duration::from_millis(u64::from(milliseconds))
        }),
    ]
}

fn any_id(task: Task) -> impl Strategy<Value = OrderId> {
    let owner = prop_oneof![
        "[a-f0-9-]{1,36}".prop_map(|uid| Owner::Crr(uid.as_str().into())),
        "[a-f0-9-]{1,36}".prop_map(|uid| Owner::Sidecars(uid.as_str().into())),
    ];
    (owner, "[a-z0-9-]{1,63}")
        .prop_map(move |(owner, container)| OrderId::new(owner, task, container.as_str().into()))
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        proptest::option::of(".+").prop_map(|hook_error| Outcome::Stopped { hook_error }),
        Just(Outcome::Gone),
        ".*".prop_map(|message| Outcome::Failed { message }),
        any::<u32>().prop_map(|count| Outcome::Removed { count }),
    ]
}

fn any_answer() -> impl Strategy<Value = Answer> {
    let refusal = prop_oneof![
        Just(Refusal::NoSuchPod),
        Just(Refusal::NoSuchContainer),
        Just(Refusal::AlreadyExited),
        Just(Refusal::StillRunning),
        any_id(Task::Stop).prop_map(|order| Refusal::StopUnfinished { order }),
        ("[a-f0-9]{0,64}", any::<u32>()).prop_map(|(id, restart_count)| Refusal::OtherInstance {
            container_id: id.as_str().into(),
            restart_count,
        }),
        ".*".prop_map(|message| Refusal::RuntimeUnavailable { message }),
        ".*".prop_map(|message| Refusal::Invalid { message }),
    ];
    let container_id = proptest::option::of("[a-f0-9]{1,64}".prop_map(ContainerId::new));
    prop_oneof![
        Just(Answer::Accepted),
        refusal.prop_map(Answer::Refused),
        (container_id, any_outcome()).prop_map(|(container_id, outcome)| Answer::Done {
            container_id,
            outcome,
        }),
    ]
}

fn any_stop() -> impl Strategy<Value = Stop> {
    let milliseconds = |it: u32| Duration::from_millis(u64::from(it));
    (
        any::<u32>(),
        proptest::option::of(any_hook()),
        proptest::option::of(1..u32::MAX),
    )
        .prop_map(move |(grace, pre_stop, limit)| Stop {
            grace: milliseconds(grace),
            pre_stop,
            begin_within: limit.map(milliseconds),
        })
}

fn any_sending() -> impl Strategy<Value = Sending> {
    let verb = prop_oneof![
        any_stop().prop_map(Verb::Stop),
        Just(Verb::RemoveDeadInstances),
    ];
    (any_id(Task::Stop), any_instance(), ".*", verb, any::<u32>()).prop_map(
        |(OrderId { owner, .. }, instance, reason, verb, attempt)| Sending {
            order: Order::new(owner, instance, reason, verb),
            attempt,
        },
    )
}

proptest! {
    #[test]
    fn orders_come_back_as_they_went(sending in any_sending()) {
        prop_assert_eq!(Sending::decode(&sending.encode()).unwrap(), sending);
    }

    #[test]
    fn answers_come_back_as_they_went(answer in any_answer()) {
        prop_assert_eq!(Answer::decode(&answer.encode()).unwrap(), answer);
    }

    #[test]
    fn reports_come_back_as_they_went(
        order in any_id(Task::Stop), instance in any_instance(), outcome in any_outcome(), sequence in any::<u32>(),
    ) {
        let report = Report { order, attempt: 1, sequence, instance, outcome };
        prop_assert_eq!(Report::decode(&report.encode()).unwrap(), report);
    }

    #[test]
    fn bytes_from_anywhere_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _order = Sending::decode(&bytes);
        let _answer = Answer::decode(&bytes);
        let _report = Report::decode(&bytes);
    }

    #[test]
    fn damaged_orders_never_panic(
        sending in any_sending(),
        place in any::<proptest::sample::Index>(), damage in any::<u8>(), keep in any::<proptest::sample::Index>(),
    ) {
        let mut bytes = sending.encode();
        let place = place.index(bytes.len());
        bytes[place] ^= damage;
        let _damaged = Sending::decode(&bytes);
        let _cut_off = Sending::decode(&bytes[..keep.index(bytes.len())]);
    }
}

#[test]
fn whatever_is_unknown_is_named() {
    let hook = hook_from(proto::PreStop { hook: None }).unwrap_err();
    let refusal = refusal_from(proto::Refused { reason: None }).unwrap_err();
    let outcome = outcome_from(proto::StopOutcome { outcome: None }).unwrap_err();
    let port = port_from("pre_stop.tcp_socket.port", 65_536).unwrap_err();
    assert_eq!(
        [hook, refusal, outcome, port].map(|error| error.to_string()),
        [
            "field pre_stop.hook is missing or of a kind that is not known here",
            "field refused.reason is missing or of a kind that is not known here",
            "field outcome is missing or of a kind that is not known here",
            "field pre_stop.tcp_socket.port is out of range: 65536",
        ]
    );
}

/// The bytes of an order without a verb.
fn without_verb() -> Vec<u8> {
    let order = proto::Order {
        id: "stop/1/app".to_owned(),
        ..proto::Order::default()
    };
    order.encode_to_vec()
}

fn error_of(bytes: &[u8]) -> String {
    Sending::decode(bytes).unwrap_err().to_string()
}

#[test]
fn an_unknown_verb_is_named() {
    let expected = "field verb is missing or of a kind that is not known here";
    assert_eq!(error_of(&without_verb()), expected);
    // A verb of a later version: field 12 of `Order`.
    let mut later = without_verb();
    later.extend([0x62, 0x02, 0x0a, 0x00]);
    assert_eq!(error_of(&later), expected);
}

#[test]
fn an_id_fits_the_order_that_it_names() {
    let order = |id: &str| {
        let instance = instance_to(&testkit::instance("app", "c"));
        let order = proto::Order {
            id: id.to_owned(),
            verb: Some(verb_to(&Verb::RemoveDeadInstances, instance)),
            ..proto::Order::default()
        };
        order.encode_to_vec()
    };
    assert!(Sending::decode(&order("drop/1/app")).is_ok());
    assert_eq!(error_of(&order("app")), "field id is not an order id");
    for id in ["stop/1/app", "drop/1/proxy"] {
        let expected = "field id contradicts another field";
        assert_eq!(error_of(&order(id)), expected, "{id}");
    }
}

#[test]
fn unknown_newer_fields_are_harmless() {
    let mut bytes = Answer::Accepted.encode();
    bytes.extend([0xfa, 0x01, 0x01, 0x2a]); // field 31, one byte long
    assert_eq!(Answer::decode(&bytes).unwrap(), Answer::Accepted);
}

/// Bytes that the version before 0.1.0's single order type sent (commit 510ba3d), as hexadecimal digits.
mod recorded {
    use super::*;

    const STOP: &str = "0a0a73746f702f312f61707010021a25436f6e7461696e65725265637265617465526571756573742073686f702f7265737461727452360a230a0473686f7012037765621a07706f642d75696422036170702a06633066666565300310b0ea011a080a060a0473796e63208827";
    const DROP: &str = "0a0a64726f702f312f61707010011a25436f6e7461696e65725265637265617465526571756573742073686f702f726573746172745a250a230a0473686f7012037765621a07706f642d75696422036170702a066330666665653003";
    const DONE: &str = "1a0f0a0d0a0b6578697420636f646520312a06633066666565";
    const DROPPED: &str = "22020802";
    const REFUSED: &str = "120c420a73746f702f312f617070";
    const REPORT: &str = "0a0a73746f702f312f6170701002180122230a0473686f7012037765621a07706f642d75696422036170702a0663306666656530032a021200";

    fn bytes(digits: &str) -> Vec<u8> {
        let pairs = digits.as_bytes().chunks(2);
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        pairs.map(byte).collect()
    }

    /// Reads what the old version sent, and writes what it reads.
    fn check<M: Message + PartialEq + std::fmt::Debug>(recorded: &str, message: &M) {
        assert_eq!(M::decode(&bytes(recorded)).unwrap(), *message);
        assert_eq!(message.encode(), bytes(recorded));
    }

    fn sending(attempt: u32, verb: Verb) -> Sending {
        let instance = Instance {
            restart_count: 3,
            ..testkit::instance("app", "c0ffee")
        };
        let reason = "ContainerRecreateRequest shop/restart".to_owned();
        let order = Order::new(Owner::Crr("1".into()), instance, reason, verb);
        Sending { order, attempt }
    }

    fn stop() -> Sending {
        let pre_stop = PreStop::Exec {
            command: vec!["sync".to_owned()],
        };
        let stop = Stop {
            grace: Duration::from_secs(30),
            pre_stop: Some(pre_stop),
            begin_within: Some(Duration::from_secs(5)),
        };
        sending(2, Verb::Stop(stop))
    }

    #[test]
    fn orders_are_the_same_for_both_versions() {
        check(STOP, &stop());
        check(DROP, &sending(1, Verb::RemoveDeadInstances));
    }

    #[test]
    fn answers_are_the_same_for_both_versions() {
        let outcome = Outcome::Stopped {
            hook_error: Some("exit code 1".to_owned()),
        };
        let container_id = Some("c0ffee".into());
        check(
            DONE,
            &Answer::Done {
                container_id,
                outcome,
            },
        );
        let outcome = Outcome::Removed { count: 2 };
        let container_id = None;
        check(
            DROPPED,
            &Answer::Done {
                container_id,
                outcome,
            },
        );
        let order = stop().order.id;
        check(REFUSED, &Answer::Refused(Refusal::StopUnfinished { order }));
    }

    #[test]
    fn reports_are_the_same_for_both_versions() {
        let Sending { order, attempt } = stop();
        let report = Report {
            order: order.id,
            attempt,
            sequence: 1,
            instance: order.instance,
            outcome: Outcome::Gone,
        };
        check(REPORT, &report);
    }
}

//! Round trips, and bytes from anywhere.

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

fn any_outcome() -> impl Strategy<Value = StopOutcome> {
    prop_oneof![
        proptest::option::of(".+").prop_map(|hook_error| StopOutcome::Stopped { hook_error }),
        Just(StopOutcome::Gone),
        ".*".prop_map(|message| StopOutcome::Failed { message }),
    ]
}

fn any_answer() -> impl Strategy<Value = OrderAnswer> {
    let refusal = prop_oneof![
        Just(Refusal::NoSuchPod),
        Just(Refusal::NoSuchContainer),
        Just(Refusal::AlreadyExited),
        Just(Refusal::StillRunning),
        ".*".prop_map(|order| Refusal::StopUnfinished {
            order: order.as_str().into(),
        }),
        ("[a-f0-9]{0,64}", any::<u32>()).prop_map(|(id, restart_count)| Refusal::OtherInstance {
            container_id: id.as_str().into(),
            restart_count,
        }),
        ".*".prop_map(|message| Refusal::RuntimeUnavailable { message }),
        ".*".prop_map(|message| Refusal::Invalid { message }),
    ];
    prop_oneof![
        Just(OrderAnswer::Accepted),
        refusal.prop_map(OrderAnswer::Refused),
        ("[a-f0-9]{1,64}", any_outcome()).prop_map(|(id, outcome)| OrderAnswer::Done {
            container_id: id.as_str().into(),
            outcome,
        }),
    ]
}

proptest! {
    #[test]
    fn orders_come_back_as_they_went(
        instance in any_instance(), attempt in any::<u32>(), grace in any::<u32>(), limit in proptest::option::of(1..u64::from(u32::MAX)),
        pre_stop in proptest::option::of(any_hook()), reason in ".*",
    ) {
        let grace = Duration::from_millis(u64::from(grace));
        let begin_within = limit.map(Duration::from_millis);
        let order = StopOrder { id: "stop/1/app".into(), attempt, instance, grace, pre_stop, begin_within, reason };
        prop_assert_eq!(StopOrder::decode(&order.encode()).unwrap(), order);
    }

    #[test]
    fn drops_come_back_as_they_went(instance in any_instance(), attempt in any::<u32>(), count in any::<u32>()) {
        let order = DropOrder { id: "drop/1/app".into(), attempt, instance, reason: "r".to_owned() };
        prop_assert_eq!(DropOrder::decode(&order.encode()).unwrap(), order.clone());
        prop_assert!(StopOrder::decode(&order.encode()).is_err(), "one verb is not taken for the other");
        let answer = DropAnswer::Dropped { count };
        prop_assert_eq!(DropAnswer::decode(&answer.encode()).unwrap(), answer.clone());
        prop_assert!(OrderAnswer::decode(&answer.encode()).is_err());
    }

    #[test]
    fn answers_come_back_as_they_went(answer in any_answer()) {
        prop_assert_eq!(OrderAnswer::decode(&answer.encode()).unwrap(), answer);
    }

    #[test]
    fn reports_come_back_as_they_went(
        instance in any_instance(), outcome in any_outcome(), sequence in any::<u32>(),
    ) {
        let report = StopReport { order: "1".into(), attempt: 1, sequence, instance, outcome };
        prop_assert_eq!(StopReport::decode(&report.encode()).unwrap(), report);
    }

    #[test]
    fn bytes_from_anywhere_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _order = StopOrder::decode(&bytes);
        let _answer = OrderAnswer::decode(&bytes);
        let _report = StopReport::decode(&bytes);
    }

    #[test]
    fn damaged_orders_never_panic(
        instance in any_instance(), pre_stop in proptest::option::of(any_hook()),
        place in any::<proptest::sample::Index>(), damage in any::<u8>(), keep in any::<proptest::sample::Index>(),
    ) {
        let grace = Duration::from_secs(30);
        let order = StopOrder { id: "1".into(), attempt: 1, instance, grace, pre_stop, begin_within: None, reason: "r".to_owned() };
        let mut bytes = order.encode();
        let place = place.index(bytes.len());
        bytes[place] ^= damage;
        let _damaged = StopOrder::decode(&bytes);
        let _cut_off = StopOrder::decode(&bytes[..keep.index(bytes.len())]);
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

#[test]
fn an_unknown_verb_is_named() {
    let order = proto::Order {
        id: "1".to_owned(),
        ..proto::Order::default()
    };
    let error = StopOrder::decode(&order.encode_to_vec()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "field verb is missing or of a kind that is not known here"
    );
}

/// A verb of a later version: field 12 of `Order`.
#[test]
fn a_newer_verb_is_an_unknown_one() {
    let order = proto::Order {
        id: "1".to_owned(),
        ..proto::Order::default()
    };
    let mut bytes = order.encode_to_vec();
    bytes.extend([0x62, 0x02, 0x0a, 0x00]);
    assert!(matches!(
        StopOrder::decode(&bytes),
        Err(InvalidMessage::Missing { field: "verb" })
    ));
}

#[test]
fn unknown_newer_fields_are_harmless() {
    let mut bytes = OrderAnswer::Accepted.encode();
    bytes.extend([0xfa, 0x01, 0x01, 0x2a]); // field 31, one byte long
    assert_eq!(OrderAnswer::decode(&bytes).unwrap(), OrderAnswer::Accepted);
}

//! What moves, what stays, and that nothing is lost on the way there and back.

use model::labels::{PRE_RECREATE_GRACE, SYNC_CONTAINER_STATUSES, UNREADY_ACQUIRED};
use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, json};

use super::*;

const TIME: &str = "2026-01-02T03:04:05Z";
const ASIDE: [&str; 2] = [
    "podwright.dev/unreadable-sync-container-statuses",
    "podwright.dev/unreadable-unready-acquired",
];

fn object(version: Version, annotations: Value, status: Value) -> Value {
    let mut object = json!({
        "apiVersion": version.to_string(), "kind": "ContainerRecreateRequest",
        "metadata": {
            "name": "restart", "namespace": "shop", "uid": "u",
            "finalizers": [UNREADY_ACQUIRED],
        },
        "spec": {"podName": "web", "containers": [{"name": "app"}], "unknown": [1, null]},
    });
    if !annotations.is_null() {
        object["metadata"]["annotations"] = annotations;
    }
    if !status.is_null() {
        object["status"] = status;
    }
    object
}

fn old(annotations: Value, status: Value) -> Value {
    object(Version::V1Alpha1, annotations, status)
}

fn new(annotations: Value, status: Value) -> Value {
    object(Version::V1Beta1, annotations, status)
}

fn converted(object: &Value, to: Version) -> Value {
    let mut object = object.clone();
    convert(&mut object, to).unwrap();
    object
}

/// The two are the same object in the two versions, both ways.
fn check(old: &Value, new: &Value) {
    assert_eq!(&converted(old, Version::V1Beta1), new);
    assert_eq!(&converted(new, Version::V1Alpha1), old);
}

fn snapshot() -> Value {
    json!([{"name": "app", "ready": true, "restartCount": 3, "containerID": "containerd://a"}])
}

fn grace(time: &str) -> Value {
    json!({
        "type": PRE_RECREATE_GRACE, "status": "True", "reason": PRE_RECREATE_GRACE,
        "message": "", "lastTransitionTime": time,
    })
}

#[test]
fn what_is_an_annotation_in_one_is_status_in_the_other() {
    let none = Value::Null;
    check(&old(none.clone(), none.clone()), &new(none.clone(), none));
    let text = snapshot().to_string();
    check(
        &old(
            json!({SYNC_CONTAINER_STATUSES: text, "mine": "kept"}),
            json!({"phase": "Recreating"}),
        ),
        &new(
            json!({"mine": "kept"}),
            json!({"phase": "Recreating", "containerStatusSnapshot": snapshot()}),
        ),
    );
    check(
        &old(json!({UNREADY_ACQUIRED: TIME}), Value::Null),
        &new(
            Value::Null,
            json!({"phase": "", "conditions": [grace(TIME)]}),
        ),
    );
    // OpenKruise 1.9 begins with an empty list.
    check(
        &old(
            json!({SYNC_CONTAINER_STATUSES: "[]"}),
            json!({"phase": "Pending"}),
        ),
        &new(
            Value::Null,
            json!({"phase": "Pending", "containerStatusSnapshot": []}),
        ),
    );
}

#[test]
fn our_conditions_are_in_both() {
    let accepted = json!({"type": "Accepted", "status": "True"});
    let status = json!({"phase": "Completed", "conditions": [accepted]});
    check(
        &old(Value::Null, status.clone()),
        &new(Value::Null, status.clone()),
    );
    check(
        &old(json!({UNREADY_ACQUIRED: TIME}), status),
        &new(
            Value::Null,
            json!({"phase": "Completed", "conditions": [accepted, grace(TIME)]}),
        ),
    );
}

#[test]
fn a_condition_that_says_more_than_the_annotation_is_kept_beside_it() {
    let mut more = grace(TIME);
    more["message"] = json!("draining for 10 s");
    let status = json!({"phase": "Recreating", "conditions": [more]});
    check(
        &old(json!({UNREADY_ACQUIRED: TIME}), status.clone()),
        &new(Value::Null, status.clone()),
    );
    // The annotation is v1alpha1's word: another time there is another time here.
    let later = "2026-01-02T03:05:00+01:00";
    let moved = converted(
        &old(json!({UNREADY_ACQUIRED: later}), status),
        Version::V1Beta1,
    );
    assert_eq!(moved["status"]["conditions"], json!([grace(later)]));
    let mut ended = grace(TIME);
    ended["status"] = json!("False");
    let status = json!({"phase": "Completed", "conditions": [ended]});
    check(&old(Value::Null, status.clone()), &new(Value::Null, status));
}

#[test]
fn what_cannot_be_read_is_kept_aside_and_warned_of() {
    let snapshots = [
        ("not json", "expected ident"),
        ("", "EOF"),
        ("null", "invalid type: null"),
        (r#"{"name":"app"}"#, "invalid type: map"),
        (r#"[{"ready":true}]"#, "missing field `name`"),
        (r#"[{"name":"a","restartCount":"1"}]"#, "invalid type"),
    ];
    let times = [
        "",
        "yesterday",
        "2026-01-02",
        "2026-01-02 03:04:05Z",
        "20260102T030405Z",
        "2026-01-02T03:04:05",
        "2026-13-02T03:04:05Z",
        "2026-01-02T03:04:05+01",
    ];
    let snapshots =
        snapshots.map(|(text, problem)| (SYNC_CONTAINER_STATUSES, ASIDE[0], text, problem));
    let times = times.map(|text| (UNREADY_ACQUIRED, ASIDE[1], text, "is not a time"));
    for (key, aside, text, problem) in snapshots.into_iter().chain(times) {
        let old = old(json!({key: text, "mine": "kept"}), Value::Null);
        check(
            &old,
            &new(json!({aside: text, "mine": "kept"}), Value::Null),
        );
        let warnings = convert(&mut old.clone(), Version::V1Beta1).unwrap();
        assert_eq!(warnings.len(), 1, "{text}");
        let start = format!("annotation {key} of shop/restart cannot be read: ");
        assert!(
            warnings[0].starts_with(&start) && warnings[0].contains(problem),
            "{warnings:?}"
        );
        assert!(
            warnings[0].ends_with(&format!("kept as {aside}")),
            "{warnings:?}"
        );
    }
}

#[test]
fn what_is_kept_aside_gives_way_to_what_is_known() {
    let status = json!({"phase": "Recreating", "containerStatusSnapshot": snapshot()});
    let text = snapshot().to_string();
    check(
        &old(
            json!({ASIDE[0]: "bad", SYNC_CONTAINER_STATUSES: text}),
            json!({"phase": "Recreating"}),
        ),
        &new(json!({ASIDE[0]: "bad"}), status),
    );
}

#[test]
fn the_items_of_a_list_are_converted_each() {
    let item = old(json!({UNREADY_ACQUIRED: TIME}), Value::Null);
    let mut bare = item.clone();
    bare.as_object_mut()
        .unwrap()
        .retain(|field, _| field != "apiVersion" && field != "kind");
    let list = json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "ContainerRecreateRequestList",
        "metadata": {"resourceVersion": "7"}, "items": [item, bare],
    });
    let list = converted(&list, Version::V1Beta1);
    assert_eq!(list["apiVersion"], "apps.kruise.io/v1beta1");
    assert_eq!(list["metadata"], json!({"resourceVersion": "7"}));
    let expected = converted(&item, Version::V1Beta1);
    assert_eq!(list["items"], json!([expected, expected]));
}

#[test]
fn another_kind_or_version_is_named() {
    let cases = [
        (json!([]), "the object is missing or is not an object"),
        (json!({}), "kind is missing or is not a string"),
        (
            json!({"kind": "Pod"}),
            r#"kind is "Pod"; allowed are ContainerRecreateRequest and ContainerRecreateRequestList"#,
        ),
        (
            json!({"kind": "ContainerRecreateRequest"}),
            "apiVersion is missing or is not a string",
        ),
        (
            json!({"kind": "ContainerRecreateRequest", "apiVersion": "apps.kruise.io/v2"}),
            r#"apiVersion is "apps.kruise.io/v2"; allowed are apps.kruise.io/v1alpha1 and apps.kruise.io/v1beta1"#,
        ),
        (
            json!({"kind": "ContainerRecreateRequestList", "apiVersion": "apps.kruise.io/v1alpha1", "items": [5]}),
            "items[0]: the item is missing or is not an object",
        ),
        (
            old(json!({UNREADY_ACQUIRED: TIME}), json!("gone")),
            "status is missing or is not an object",
        ),
        (
            old(json!({UNREADY_ACQUIRED: TIME}), json!({"conditions": 1})),
            "status.conditions is missing or is not a list",
        ),
    ];
    for (mut object, expected) in cases {
        let error = convert(&mut object, Version::V1Beta1).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

fn answered(review: &Value) -> (Value, Answer) {
    let answer = answer(review.to_string().as_bytes()).unwrap();
    (serde_json::from_slice(&answer.body).unwrap(), answer)
}

fn review(desired: &str, objects: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "the-uid", "desiredAPIVersion": desired, "objects": objects},
    })
}

#[test]
fn a_review_is_answered_object_by_object() {
    let objects = [
        old(json!({UNREADY_ACQUIRED: TIME}), Value::Null),
        new(Value::Null, Value::Null),
        old(json!({UNREADY_ACQUIRED: "bad"}), Value::Null),
    ];
    let (said, answer) = answered(&review("apps.kruise.io/v1beta1", json!(objects)));
    assert_eq!((answer.failure, answer.warnings.len()), (None, 1));
    let converted = objects.map(|object| converted(&object, Version::V1Beta1));
    assert_eq!(
        said,
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "response": {
                "uid": "the-uid", "result": {"status": "Success"}, "convertedObjects": converted,
            },
        })
    );
}

#[test]
fn what_is_wrong_with_a_review_is_answered_under_its_uid() {
    let no_objects =
        json!({"request": {"uid": "the-uid", "desiredAPIVersion": "apps.kruise.io/v1beta1"}});
    let cases = [
        (
            review("apps/v1", json!([])),
            r#"request.desiredAPIVersion is "apps/v1"; allowed are"#,
        ),
        (
            json!({"request": {"uid": "the-uid"}}),
            r#"request.desiredAPIVersion is ""; allowed are"#,
        ),
        (
            no_objects,
            "request.objects is not a list: invalid type: null",
        ),
        (
            review("apps.kruise.io/v1beta1", json!("x")),
            "request.objects is not a list: invalid type: string",
        ),
        (
            review(
                "apps.kruise.io/v1beta1",
                json!([old(Value::Null, Value::Null), {"kind": "Pod"}]),
            ),
            r#"request.objects[1]: kind is "Pod"; allowed are"#,
        ),
    ];
    for (review, expected) in cases {
        let (said, answer) = answered(&review);
        let response = &said["response"];
        assert_eq!(response["uid"], "the-uid");
        assert_eq!(response["result"]["status"], "Failed");
        assert_eq!(response["convertedObjects"], json!([]));
        let message = response["result"]["message"].as_str().unwrap();
        assert!(message.starts_with(expected), "{message}");
        assert_eq!(answer.failure.as_deref(), Some(message));
    }
}

#[test]
fn what_has_no_uid_is_no_review() {
    for body in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"request":{}}"#,
        r#"{"request":{"uid":5}}"#,
    ] {
        let error = answer(body.as_bytes()).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("expected is a ConversionReview"),
            "{error}"
        );
    }
    let error = answer(br#"{"request":{"uid":""}}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "request.uid is empty; expected is a ConversionReview"
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z\"\\\\\u{e9}\n]{0,4}".prop_map(Value::from),
        Just(json!(TIME)),
        Just(json!("ContainerRecreateRequest")),
        Just(json!("apps.kruise.io/v1alpha1")),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let keys = prop::sample::select(vec![
            "apiVersion",
            "kind",
            "items",
            "metadata",
            "annotations",
            "status",
            "conditions",
            "type",
            "lastTransitionTime",
            "containerStatusSnapshot",
            SYNC_CONTAINER_STATUSES,
            UNREADY_ACQUIRED,
        ]);
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((keys, inner), 0..5).prop_map(to_object),
        ]
    })
}

fn to_object(entries: Vec<(&str, Value)>) -> Value {
    let entries = entries.into_iter();
    Value::Object(
        entries
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    )
}

fn any_time() -> impl Strategy<Value = String> {
    let zone = prop::sample::select(vec!["Z", "+00:00", "-07:30", ".25Z", ".123456789+14:00"]);
    (0..60_u8, 0..24_u8, zone)
        .prop_map(|(second, hour, zone)| format!("2026-02-28T{hour:02}:59:{second:02}{zone}"))
}

fn any_snapshot() -> impl Strategy<Value = Value> {
    let entry = (
        "[a-z]{0,3}",
        any::<bool>(),
        any::<i32>(),
        option::of(any_json()),
    );
    let entry = entry.prop_map(|(name, ready, count, more)| {
        let mut entry = json!({
            "name": name, "ready": ready, "restartCount": count, "containerID": "containerd://a",
        });
        if let Some(more) = more {
            entry["more"] = more;
        }
        entry
    });
    vec(entry, 0..4).prop_map(Value::from)
}

/// Conditions of any kind, at most one of them the grace.
fn any_conditions() -> impl Strategy<Value = Vec<Value>> {
    let other = prop::sample::select(vec!["Accepted", "Dispatched", "Succeeded"]);
    let other = (other, any_json()).prop_map(|(name, more)| json!({"type": name, "more": more}));
    let grace = (
        any_time(),
        "[a-z]{0,2}",
        prop::sample::select(vec!["True", "False"]),
    )
        .prop_map(|(time, message, status)| {
            let mut grace = grace(&time);
            grace["message"] = json!(message);
            grace["status"] = json!(status);
            grace
        });
    (
        vec(other, 0..3),
        option::of((grace, any::<prop::sample::Index>())),
    )
        .prop_map(|(mut conditions, grace)| {
            if let Some((grace, place)) = grace {
                conditions.insert(place.index(conditions.len() + 1), grace);
            }
            conditions
        })
}

/// Text that is in no case what a key of v1alpha1 holds.
fn unreadable() -> impl Strategy<Value = String> {
    "[a-z]{0,3}".prop_filter("null is JSON", |text| text != "null")
}

/// Annotations that are of no version.
fn others() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let keys = prop::sample::select(vec!["mine", "podwright.dev/traceparent"]);
    vec((keys, "[a-z]{0,3}".prop_map(Value::from)), 0..3)
}

prop_compose! {
    fn any_new()(
        snapshot in option::of(any_snapshot()), conditions in any_conditions(),
        more in option::of(any_json()), others in others(),
        aside in [option::of(unreadable()), option::of(unreadable())],
    ) -> Value {
        let mut annotations = others;
        for (key, text) in ASIDE.iter().zip(aside) {
            annotations.extend(text.map(|text| (*key, json!(text))));
        }
        let mut status = json!({"phase": "Recreating"});
        if let Some(snapshot) = snapshot {
            status["containerStatusSnapshot"] = snapshot;
        }
        if !conditions.is_empty() {
            status["conditions"] = json!(conditions);
        }
        if let Some(more) = more {
            status["more"] = more;
        }
        let annotations = if annotations.is_empty() { Value::Null } else { to_object(annotations) };
        new(annotations, status)
    }
}

prop_compose! {
    fn any_old()(
        snapshot in option::of(prop_oneof![
            any_snapshot().prop_map(|snapshot| snapshot.to_string()), unreadable(),
        ]),
        acquired in option::of(prop_oneof![any_time(), unreadable()]),
        status in option::of(any_json()), others in others(),
    ) -> Value {
        let mut annotations = others;
        annotations.extend(snapshot.map(|text| (SYNC_CONTAINER_STATUSES, json!(text))));
        annotations.extend(acquired.map(|text| (UNREADY_ACQUIRED, json!(text))));
        let status = status.map(|more| json!({"phase": "Completed", "more": more}));
        let annotations = if annotations.is_empty() { Value::Null } else { to_object(annotations) };
        old(annotations, status.unwrap_or_default())
    }
}

proptest! {
    #[test]
    fn there_and_back_is_where_it_was(new in any_new(), old in any_old()) {
        prop_assert_eq!(&converted(&converted(&new, Version::V1Alpha1), Version::V1Beta1), &new);
        prop_assert_eq!(&converted(&converted(&old, Version::V1Beta1), Version::V1Alpha1), &old);
    }

    /// Of metadata, the API server lets a webhook change labels and annotations only.
    #[test]
    fn only_annotations_and_status_are_touched(new in any_new(), old in any_old()) {
        for (object, to) in [(new, Version::V1Alpha1), (old, Version::V1Beta1)] {
            let [mut before, mut after] = [object.clone(), converted(&object, to)];
            for object in [&mut before, &mut after] {
                object["apiVersion"] = Value::Null;
                object["status"] = Value::Null;
                object["metadata"]["annotations"] = Value::Null;
            }
            prop_assert_eq!(before, after);
        }
    }

    /// The old keys are in no v1beta1 object that was converted.
    #[test]
    fn the_old_annotations_are_not_seen(old in any_old()) {
        let new = converted(&old, Version::V1Beta1);
        for key in [SYNC_CONTAINER_STATUSES, UNREADY_ACQUIRED] {
            prop_assert!(new["metadata"]["annotations"].get(key).is_none());
        }
    }

    #[test]
    fn anything_is_answered(object in any_json(), status in any_json(), annotations in any_json()) {
        let nested = old(annotations, status);
        for object in [&object, &nested] {
            for to in [Version::V1Alpha1, Version::V1Beta1] {
                let _converted = convert(&mut object.clone(), to);
                let (said, _) = answered(&review(&to.to_string(), json!([object])));
                prop_assert_eq!(&said["response"]["uid"], "the-uid");
                let _answer = answer(object.to_string().as_bytes());
            }
        }
    }
}

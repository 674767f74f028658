//! Pods as authors send them, and what becomes of their containers.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

const FACTS: LaunchFacts<'_> = LaunchFacts {
    name_end: "x7k2p",
    traceparent: None,
};

fn container(name: &str, env: Value) -> Value {
    json!({ "name": name, "image": "busybox", "env": env })
}

fn priority(value: &str) -> Value {
    json!([{ "name": "A", "value": "a" }, { "name": "KRUISE_CONTAINER_PRIORITY", "value": value }])
}

fn pod(containers: &[Value]) -> Value {
    json!({ "metadata": { "name": "web" }, "spec": { "containers": containers } })
}

fn ordered(mut pod: Value) -> Value {
    pod["metadata"]["annotations"] =
        json!({ "apps.kruise.io/container-launch-priority": "Ordered" });
    pod
}

fn review(pod: &Value, facts: &LaunchFacts<'_>) -> Verdict {
    review_launch(&serde_json::from_value(pod.clone()).unwrap(), facts)
}

fn containers(pod: &Value) -> &[Value] {
    pod["spec"]["containers"].as_array().unwrap()
}

fn patched(pod: &Value) -> Value {
    let verdict = review(pod, &FACTS);
    assert!(verdict.is_allowed(), "{}", verdict.message());
    let mut patched = pod.clone();
    json_patch::patch(&mut patched, &verdict.patch).unwrap();
    patched
}

/// The keys of the containers' barriers, which are their last variables.
fn keys(pod: &Value) -> Vec<String> {
    let of = |container: &Value| {
        let last = container["env"].as_array()?.last()?;
        let source = &last["valueFrom"]["configMapKeyRef"];
        assert_eq!(source["name"], "web-barrier");
        assert_eq!(last["name"], "KRUISE_CONTAINER_BARRIER");
        source["key"].as_str().map(str::to_owned)
    };
    containers(pod).iter().filter_map(of).collect()
}

#[track_caller]
fn refused(pod: &Value, field: &str, words: &[&str]) {
    let verdict = review(pod, &FACTS);
    assert!(verdict.patch.0.is_empty());
    let message = verdict.message();
    assert!(message.starts_with(&format!("{field}: ")), "{message}");
    for word in words {
        assert!(message.contains(word), "{word} in {message}");
    }
}

#[test]
fn each_container_waits_for_its_own_level() {
    let some = pod(&[
        container("main", json!([])),
        container("proxy", priority("10")),
        json!({ "name": "late", "env": priority("-2147483647") }),
    ]);
    let done = patched(&some);
    assert_eq!(keys(&done), ["p_0", "p_10", "p_-2147483647"]);
    assert_eq!(
        done["metadata"]["labels"]["podwright.dev/launch-barrier"],
        "true"
    );
    // Nothing but the barrier comes into the environment.
    let lengths: Vec<_> = containers(&done)
        .iter()
        .map(|container| container["env"].as_array().unwrap().len())
        .collect();
    assert_eq!(lengths, [1, 3, 3]);

    let by_place = ordered(pod(&[
        container("a", json!(null)),
        container("b", priority("nonsense")),
        container("c", json!([])),
    ]));
    assert_eq!(keys(&patched(&by_place)), ["p_0", "p_-1", "p_-2"]);
    let warnings = review(&by_place, &FACTS).warnings;
    assert!(warnings[0].contains("is not looked at"), "{warnings:?}");
}

#[test]
fn of_several_priorities_the_last_counts() {
    let env = json!([
        { "name": "KRUISE_CONTAINER_PRIORITY", "value": "nonsense" },
        { "name": "KRUISE_CONTAINER_PRIORITY", "value": "+03" },
    ]);
    let done = patched(&pod(&[container("a", env), container("b", json!([]))]));
    assert_eq!(keys(&done), ["p_3", "p_0"]);
}

#[test]
fn a_pod_without_levels_is_left_alone() {
    for pod in [
        pod(&[container("a", json!([])), container("b", json!([]))]),
        pod(&[container("a", priority("5")), container("b", priority("5"))]),
        pod(&[container("a", priority("0")), container("b", json!([]))]),
        pod(&[container("a", priority("5"))]),
        pod(&[container("a", priority("nonsense"))]),
        ordered(pod(&[container("a", json!([]))])),
        ordered(pod(&[])),
    ] {
        assert_eq!(patched(&pod), pod);
    }
}

/// As of `kubectl get pod -o yaml`, sent again and changed by hand.
#[test]
fn barriers_of_ours_are_written_anew_and_last() {
    let barrier = |key: &str| {
        let source = json!({ "name": "web-barrier", "key": key });
        json!({ "name": "KRUISE_CONTAINER_BARRIER", "valueFrom": { "configMapKeyRef": source } })
    };
    let variable = json!({ "name": "KRUISE_CONTAINER_PRIORITY", "value": "1" });
    let twice = json!([barrier("p_7"), variable, barrier("p_8")]);
    let done = patched(&pod(&[container("a", twice), container("b", json!([]))]));
    assert_eq!(keys(&done), ["p_1", "p_0"]);
    assert_eq!(containers(&done)[0]["env"].as_array().unwrap().len(), 2);
    assert_eq!(patched(&done), done);
}

#[test]
fn a_pod_that_only_has_a_beginning_of_a_name_gets_one() {
    let mut some = ordered(pod(&[container("a", json!([])), container("b", json!([]))]));
    some["metadata"]["name"] = json!(null);
    some["metadata"]["generateName"] = json!("we");
    let mut short = some.clone();
    let done = patched(&some);
    assert_eq!(done["metadata"]["name"], "wex7k2p");
    let source = &done["spec"]["containers"][0]["env"][0]["valueFrom"]["configMapKeyRef"];
    assert_eq!(source["name"], "wex7k2p-barrier");

    short["metadata"]["generateName"] = json!("w".repeat(80));
    let name = patched(&short)["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!((name.len(), name.ends_with("wx7k2p")), (63, true));
}

#[test]
fn what_is_no_priority_is_refused_with_its_container() {
    for (env, words) in [
        (priority(""), ["container b", r#"is """#]),
        (priority("1.5"), ["container b", r#"is "1.5""#]),
        (priority("high"), ["container b", r#"is "high""#]),
        (priority("2147483648"), ["container b", "to 2147483647"]),
        (priority("-2147483648"), ["container b", "from -2147483647"]),
        (
            priority("99999999999999999999"),
            ["container b", "allowed is"],
        ),
        (
            json!([{}, { "name": "KRUISE_CONTAINER_PRIORITY", "valueFrom": { "fieldRef": {} } }]),
            ["container b", "valueFrom"],
        ),
        (
            json!([{}, { "name": "KRUISE_CONTAINER_PRIORITY" }]),
            ["container b", "has no value"],
        ),
    ] {
        let two = pod(&[container("a", json!([])), container("b", env.clone())]);
        refused(&two, "spec.containers[1].env[1]", &words);
        // Nobody looks at it there, nor does OpenKruise.
        let alone = pod(&[container("b", env)]);
        assert_eq!(patched(&alone), alone);
        let warnings = review(&alone, &FACTS).warnings;
        assert!(warnings[0].contains("one container only"), "{warnings:?}");
    }
}

#[test]
fn all_wrong_priorities_are_told_at_once() {
    let pod = pod(&[container("a", priority("x")), container("b", priority("y"))]);
    assert_eq!(review(&pod, &FACTS).faults.len(), 2);
}

#[test]
fn a_barrier_of_somebody_else_is_refused() {
    let barrier = |source: Value| {
        let mut variable = json!({ "name": "KRUISE_CONTAINER_BARRIER" });
        for (key, value) in source.as_object().unwrap() {
            variable[key] = value.clone();
        }
        json!([variable])
    };
    let from = |name: &str, key: &str| json!({ "valueFrom": { "configMapKeyRef": { "name": name, "key": key } } });
    for source in [
        json!({}),
        json!({ "value": "p_0" }),
        from("other-barrier", "p_0"),
        from("web-barrier", "p"),
        json!({ "valueFrom": { "configMapKeyRef": { "name": "web-barrier", "key": "p_0", "optional": true } } }),
        json!({ "valueFrom": { "secretKeyRef": { "name": "web-barrier", "key": "p_0" } } }),
    ] {
        let some = pod(&[
            container("a", priority("1")),
            container("b", barrier(source.clone())),
        ]);
        refused(
            &some,
            "spec.containers[1].env",
            &["container b", "leave it out"],
        );
        let alone = pod(&[container("b", barrier(source))]);
        refused(
            &alone,
            "spec.containers[0].env",
            &["container b", "leave it out"],
        );
    }
    // As we would write it, but nobody would ever open it.
    let unordered = pod(&[
        container("a", json!([])),
        container("b", barrier(from("web-barrier", "p_0"))),
    ]);
    refused(&unordered, "spec.containers[1].env", &["container b"]);
}

#[test]
fn asked_again_after_another_webhook_it_brings_barriers_up_to_date() {
    let once = patched(&ordered(pod(&[
        container("a", json!([])),
        container("b", json!([])),
    ])));
    assert_eq!(patched(&once), once);
    let mut more = once.clone();
    let injected = container("mesh", json!([]));
    more["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .insert(0, injected);
    assert_eq!(keys(&patched(&more)), ["p_0", "p_-1", "p_-2"]);
}

#[test]
fn a_name_that_leaves_no_room_for_the_config_map_is_refused() {
    let mut long = ordered(pod(&[container("a", json!([])), container("b", json!([]))]));
    long["metadata"]["name"] = json!("w".repeat(246));
    refused(&long, "metadata.name", &["245"]);
    long["metadata"]["name"] = json!("w".repeat(245));
    assert!(review(&long, &FACTS).is_allowed());
}

#[test]
fn the_trace_goes_on_and_an_earlier_pods_words_do_not() {
    let mut copied = ordered(pod(&[container("a", json!([])), container("b", json!([]))]));
    let annotations = &mut copied["metadata"]["annotations"];
    annotations["podwright.dev/launch-level"] = json!("p_-1");
    annotations["apps.kruise.io/container-launch-priority-completed"] = json!("true");
    let facts = LaunchFacts {
        traceparent: Some("00-a-b-01"),
        ..FACTS
    };
    let mut done = copied.clone();
    json_patch::patch(&mut done, &review(&copied, &facts).patch).unwrap();
    let annotations = json!({
        "apps.kruise.io/container-launch-priority": "Ordered", "podwright.dev/traceparent": "00-a-b-01",
    });
    assert_eq!(done["metadata"]["annotations"], annotations);
}

#[test]
fn odd_words_are_warned_of() {
    let mut some = pod(&[container("a", json!([])), container("b", json!([]))]);
    some["metadata"]["annotations"] =
        json!({ "apps.kruise.io/container-launch-priority": "ordered" });
    some["spec"]["initContainers"] = json!([container("setup", priority("1"))]);
    let verdict = review(&some, &FACTS);
    assert!(verdict.is_allowed() && verdict.patch.0.is_empty());
    assert!(verdict.warnings[0].contains(r#""ordered" says nothing"#));
    assert!(verdict.warnings[1].ends_with(": setup"));
}

#[test]
fn a_static_pods_mirror_is_left_alone() {
    let mut mirror = ordered(pod(&[container("a", json!([])), container("b", json!([]))]));
    mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = json!("hash");
    assert_eq!(patched(&mirror), mirror);
}

fn anything() -> impl Strategy<Value = Value> {
    let words = prop_oneof![
        Just("name"),
        Just("env"),
        Just("value"),
        Just("valueFrom"),
        Just("containers"),
        Just("spec"),
        Just("metadata"),
        Just("annotations"),
        Just("labels"),
        Just("configMapKeyRef"),
        Just("key"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop_oneof![
            Just("KRUISE_CONTAINER_PRIORITY"),
            Just("KRUISE_CONTAINER_BARRIER"),
            Just("Ordered"),
            Just("1"),
            Just("é"),
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(words.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn anything_is_answered(metadata in anything(), containers in anything(), env in anything()) {
        let metadata = json!({ "metadata": metadata });
        let metadata = serde_json::from_value::<DynamicObject>(metadata).unwrap_or_else(|_| {
            serde_json::from_value(json!({ "metadata": { "name": "web" } })).unwrap()
        });
        let metadata = json!(metadata)["metadata"].clone();
        for pod in [
            json!({ "metadata": metadata, "spec": { "containers": containers } }),
            ordered(json!({ "metadata": metadata, "spec": containers })),
            ordered(pod(&[json!({ "name": "a", "env": env }), container("b", containers.clone())])),
            ordered(pod(&[json!({ "name": "a", "env": [env] }), container("b", json!([env]))])),
        ] {
            let verdict = review(&pod, &FACTS);
            let mut patched = pod.clone();
            json_patch::patch(&mut patched, &verdict.patch).unwrap();
        }
    }
}

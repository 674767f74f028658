//! Pods with launch barriers, and the ConfigMaps that open them.

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVar, Pod as PodObject};
use kube::ResourceExt;
use model::{
    labels,
    launch::{BARRIER_SUFFIX, BARRIER_VARIABLE, BarrierMap, LaunchContainer, LaunchPod, Priority},
};

use super::{InvalidPod, pod_from_object};

#[derive(Debug, thiserror::Error)]
pub enum InvalidLaunch {
    #[error("the pod cannot be read")]
    Pod(#[from] InvalidPod),
    #[error(
        "{BARRIER_VARIABLE} of container {container} is not taken from a key p_<priority> of ConfigMap {map}"
    )]
    Barrier { container: String, map: String },
}

/// Reads a pod and the barriers of its containers; one without any has none.
///
/// # Errors
/// The pod cannot be read, or a barrier is not as admission writes it.
pub fn launch_pod_from_object(object: &PodObject) -> Result<LaunchPod, InvalidLaunch> {
    let pod = pod_from_object(object)?;
    let map = format!("{}{BARRIER_SUFFIX}", pod.key.name);
    let annotation = |key: &str| object.annotations().get(key);
    let containers = object.spec.iter().flat_map(|spec| &spec.containers);
    let containers = containers.filter_map(|container| launch_container(container, &map));
    let completed = annotation(labels::LAUNCH_COMPLETED);
    Ok(LaunchPod {
        containers: containers.collect::<Result<_, _>>()?,
        told: annotation(labels::LAUNCH_LEVEL).and_then(|key| Priority::from_key(key)),
        is_completed: completed.is_some_and(|word| word == labels::LAUNCH_COMPLETED_TRUE),
        trace_parent: annotation(labels::TRACE_PARENT).cloned(),
        pod,
    })
}

fn launch_container(
    container: &Container,
    map: &str,
) -> Option<Result<LaunchContainer, InvalidLaunch>> {
    let mut variables = container.env.iter().flatten();
    // Of several of one name the last counts (Kubernetes).
    let barrier = variables.rfind(|variable| variable.name == BARRIER_VARIABLE)?;
    let lifecycle = container.lifecycle.as_ref();
    let found = priority(barrier, map).map(|priority| LaunchContainer {
        name: container.name.as_str().into(),
        priority,
        needs_status: container.readiness_probe.is_some()
            || container.startup_probe.is_some()
            || lifecycle.is_some_and(|lifecycle| lifecycle.post_start.is_some()),
    });
    Some(found.ok_or_else(|| InvalidLaunch::Barrier {
        container: container.name.clone(),
        map: map.to_owned(),
    }))
}

fn priority(barrier: &EnvVar, map: &str) -> Option<Priority> {
    let source = barrier.value_from.as_ref()?.config_map_key_ref.as_ref()?;
    (source.name == map).then(|| Priority::from_key(&source.key))?
}

/// Reads a ConfigMap as a pod's barriers. Keys that are no level's are nobody's business.
pub fn barrier_map_from_object(object: &ConfigMap) -> BarrierMap {
    let metadata = &object.metadata;
    let owners = metadata.owner_references.iter().flatten();
    let label = object.labels().get(labels::LAUNCH_BARRIER);
    let keys = object.data.iter().flat_map(|data| data.keys());
    BarrierMap {
        uid: metadata.uid.clone().unwrap_or_default(),
        version: metadata.resource_version.clone().unwrap_or_default(),
        owners: owners
            .filter(|owner| owner.kind == "Pod" && owner.api_version == "v1")
            .map(|owner| owner.uid.as_str().into())
            .collect(),
        is_labelled: label.is_some_and(|value| value == labels::LAUNCH_BARRIER_TRUE),
        is_being_deleted: metadata.deletion_timestamp.is_some(),
        keys: keys.filter_map(|key| Priority::from_key(key)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(containers: Value) -> Result<LaunchPod, InvalidLaunch> {
        let object = json!({
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "u", "annotations": {
                    "podwright.dev/launch-level": "p_-1", "podwright.dev/traceparent": "00-a-b-01",
                    "apps.kruise.io/container-launch-priority-completed": "true",
                },
            },
            "spec": { "containers": containers },
        });
        launch_pod_from_object(&serde_json::from_value(object).unwrap())
    }

    fn barrier(map: &str, key: &str) -> Value {
        let source = json!({ "configMapKeyRef": { "name": map, "key": key } });
        json!([{ "name": "A" }, { "name": "KRUISE_CONTAINER_BARRIER", "valueFrom": source }])
    }

    #[test]
    fn containers_have_the_level_of_their_barrier() {
        let probe = json!({ "exec": { "command": ["true"] } });
        let read = pod(json!([
            { "name": "a", "env": barrier("web-barrier", "p_7") },
            { "name": "b", "env": barrier("web-barrier", "p_-1"), "readinessProbe": probe },
            { "name": "c", "env": barrier("web-barrier", "p_-1"), "startupProbe": probe },
            { "name": "d", "env": barrier("web-barrier", "p_-1"), "lifecycle": { "postStart": probe } },
            { "name": "e", "env": barrier("web-barrier", "p_-1"), "livenessProbe": probe },
            { "name": "none" },
        ]))
        .unwrap();
        let levels: Vec<_> = read
            .containers
            .iter()
            .map(|it| (it.name.as_str(), it.priority.key(), it.needs_status))
            .collect();
        let low = || "p_-1".to_owned();
        let expected = [
            ("a", "p_7".to_owned(), false),
            ("b", low(), true),
            ("c", low(), true),
            ("d", low(), true),
            ("e", low(), false),
        ];
        assert_eq!(levels, expected);
        assert_eq!(read.told, Some(Priority::new(-1)));
        assert_eq!(read.trace_parent.as_deref(), Some("00-a-b-01"));
        assert!(read.is_completed);
    }

    #[test]
    fn a_barrier_that_nobody_opens_is_named() {
        for env in [
            barrier("other", "p_1"),
            barrier("web-barrier", ""),
            barrier("web-barrier", "é"),
            json!([{ "name": "KRUISE_CONTAINER_BARRIER" }]),
            json!([{ "name": "KRUISE_CONTAINER_BARRIER", "value": "1" }]),
            json!([{ "name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {} }]),
        ] {
            let error = pod(json!([{ "name": "a", "env": env }])).unwrap_err();
            assert!(error.to_string().contains("container a"), "{error}");
        }
    }

    #[test]
    fn a_map_has_owners_and_levels() {
        let object = json!({
            "metadata": {
                "name": "web-barrier", "uid": "m", "resourceVersion": "7",
                "labels": { "podwright.dev/launch-barrier": "true" },
                "ownerReferences": [
                    { "apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u" },
                    { "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r" },
                ],
            },
            "data": { "p_0": "true", "p_-5": "true", "other": "" },
        });
        let map = barrier_map_from_object(&serde_json::from_value(object).unwrap());
        assert_eq!(map.owners, ["u".into()]);
        assert!(map.is_labelled);
        assert_eq!(map.keys, [-5, 0].map(Priority::new).into());
        let bare = barrier_map_from_object(&ConfigMap::default());
        assert!(bare.owners.is_empty() && bare.keys.is_empty() && !bare.is_labelled);
    }
}

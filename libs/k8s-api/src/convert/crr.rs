//! ContainerRecreateRequests: spec and labels to the model, status both ways.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{ContainerPort, LifecycleHandler},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::ResourceExt;
use model::{
    condition::{Condition, ConditionState, ConditionType},
    crr::{
        ContainerRecreateState, ContainerSnapshot, Crr, CrrContainer, CrrStatus, FailurePolicy,
        Fence, Strategy,
    },
    ids::{CrrKey, CrrUid, InvalidContainerId, NodeName, PodKey, PodUid},
    labels,
    order::{HttpScheme, PreStop},
    phase::{ContainerPhase, CrrPhase},
};
use serde_json::{Value, json};

use crate::crd::{
    ContainerRecreateRequest, ContainerRecreateRequestContainer, ContainerRecreateRequestStatus,
    ContainerRecreateRequestStrategy,
};

#[derive(Debug, thiserror::Error)]
pub enum InvalidCrr {
    #[error("{field} is missing")]
    Missing { field: &'static str },
    #[error("statusContext of container {container} cannot be read")]
    ContainerId {
        container: String,
        #[source]
        source: InvalidContainerId,
    },
}

/// The object's namespaced name, where it has one.
pub fn crr_key(object: &ContainerRecreateRequest) -> Option<CrrKey> {
    let namespace = object.metadata.namespace.as_deref()?;
    let name = object.metadata.name.as_deref()?;
    Some(CrrKey {
        namespace: namespace.into(),
        name: name.into(),
    })
}

/// Reads a CRR.
///
/// # Errors
/// A field that every stored object has is missing, or one that admission wrote cannot be read.
pub fn crr_from_object(object: &ContainerRecreateRequest) -> Result<Crr, InvalidCrr> {
    let metadata = &object.metadata;
    let missing = |field| InvalidCrr::Missing { field };
    let key = crr_key(object).ok_or(missing("metadata.name"))?;
    let created_at = metadata.creation_timestamp.as_ref().map(|time| time.0);
    let label = |name| object.labels().get(name).cloned();
    let annotation = |name| object.annotations().get(name).cloned();
    let back_off = annotation(labels::BACK_OFF);
    let spec = &object.spec;
    let containers: Result<_, _> = spec.containers.iter().map(container).collect();
    Ok(Crr {
        uid: CrrUid::new(object.uid().ok_or(missing("metadata.uid"))?),
        version: metadata.resource_version.clone().unwrap_or_default(),
        created_at: created_at.ok_or(missing("metadata.creationTimestamp"))?,
        is_being_deleted: metadata.deletion_timestamp.is_some(),
        is_labelled_active: label(labels::CRR_ACTIVE).is_some(),
        finalizers: metadata.finalizers.clone().unwrap_or_default(),
        requested_by: annotation(labels::REQUESTED_BY),
        respects_back_off: back_off.is_some_and(|word| word == labels::BACK_OFF_RESPECT),
        pod: PodKey {
            namespace: key.namespace.clone(),
            name: spec.pod_name.as_str().into(),
        },
        pod_uid: label(labels::CRR_POD_UID).map(PodUid::new),
        node: label(labels::CRR_NODE_NAME).map(NodeName::new),
        containers: containers?,
        strategy: spec.strategy.as_ref().map(strategy).unwrap_or_default(),
        active_deadline: seconds(spec.active_deadline_seconds),
        ttl_after_finished: seconds(spec.ttl_seconds_after_finished.map(i64::from)),
        status: object.status.as_ref().map(status).unwrap_or_default(),
        traceparent: annotation(labels::TRACE_PARENT),
        key,
    })
}

fn container(spec: &ContainerRecreateRequestContainer) -> Result<CrrContainer, InvalidCrr> {
    let fence = spec.status_context.as_ref().map(|context| {
        let container_id = context.container_id.parse();
        container_id.map(|container_id| Fence {
            container_id,
            restart_count: u32::try_from(context.restart_count).unwrap_or(0),
        })
    });
    let fence = fence.transpose();
    let fence = fence.map_err(|source| InvalidCrr::ContainerId {
        container: spec.name.clone(),
        source,
    })?;
    let hook = spec.pre_stop.as_ref();
    let hook = hook.map_or(Ok(None), |hook| pre_stop(hook, &spec.ports));
    let (pre_stop, hook_fault) = match hook {
        Ok(hook) => (hook, None),
        Err(fault) => (None, Some(fault)),
    };
    Ok(CrrContainer {
        name: spec.name.as_str().into(),
        pre_stop,
        hook_fault,
        fence,
    })
}

/// Reads a hook; `None` for a handler without a member.
fn pre_stop(hook: &LifecycleHandler, ports: &[ContainerPort]) -> Result<Option<PreStop>, String> {
    let host = |host: &Option<String>| host.clone().filter(|host| !host.is_empty());
    if let Some(exec) = &hook.exec {
        let command = exec.command.clone().unwrap_or_default();
        return Ok(Some(PreStop::Exec { command }));
    }
    if let Some(get) = &hook.http_get {
        let headers = get.http_headers.iter().flatten();
        return Ok(Some(PreStop::HttpGet {
            scheme: match get.scheme.as_deref() {
                Some("HTTPS") => HttpScheme::Https,
                Some(_) | None => HttpScheme::Http,
            },
            host: host(&get.host),
            port: port(&get.port, ports)?,
            path: get.path.clone().unwrap_or_else(|| "/".to_owned()),
            headers: headers
                .map(|header| (header.name.clone(), header.value.clone()))
                .collect(),
        }));
    }
    if let Some(socket) = &hook.tcp_socket {
        return Ok(Some(PreStop::TcpSocket {
            host: host(&socket.host),
            port: port(&socket.port, ports)?,
        }));
    }
    let sleep = hook.sleep.as_ref().map(|sleep| PreStop::Sleep {
        duration: seconds(Some(sleep.seconds)).unwrap_or_default(),
    });
    Ok(sleep)
}

/// A port by number, or by its name among the container's ports.
fn port(port: &IntOrString, ports: &[ContainerPort]) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let named = ports.iter().find(|port| port.name.as_ref() == Some(name));
            let number = named.map(|port| port.container_port);
            let number = number.or_else(|| name.parse().ok());
            number.ok_or_else(|| format!("the container has no port named {name:?}"))?
        }
    };
    u16::try_from(number).map_err(|_| format!("port {number} is not between 1 and 65535"))
}

fn strategy(spec: &ContainerRecreateRequestStrategy) -> Strategy {
    Strategy {
        failure_policy: match spec.failure_policy.as_deref() {
            Some("Ignore") => FailurePolicy::Ignore,
            Some(_) | None => FailurePolicy::Fail,
        },
        is_ordered: spec.ordered_recreate.unwrap_or(false),
        is_forced: spec.force_recreate.unwrap_or(false),
        termination_grace: seconds(spec.termination_grace_period_seconds),
        unready_grace: seconds(spec.unready_grace_period_seconds),
        min_started: seconds(spec.min_started_seconds.map(i64::from)).unwrap_or_default(),
    }
}

fn status(object: &ContainerRecreateRequestStatus) -> CrrStatus {
    let states = object.container_recreate_states.iter();
    let containers = states.map(|state| ContainerRecreateState {
        name: state.name.as_str().into(),
        phase: container_phase(&state.phase),
        message: state.message.clone().unwrap_or_default(),
        is_killed: state.is_killed.unwrap_or(false),
    });
    // What is not ours to read is not ours to keep: an entry that cannot be read is written anew.
    let snapshots = object.container_status_snapshot.iter().filter_map(|entry| {
        Some(ContainerSnapshot {
            name: entry.name.as_str().into(),
            is_ready: entry.ready,
            restart_count: u32::try_from(entry.restart_count).unwrap_or(0),
            container_id: entry.container_id.parse().ok()?,
        })
    });
    let conditions = object.conditions.iter().filter_map(|condition| {
        Some(Condition {
            kind: ConditionType::parse(&condition.type_)?,
            state: ConditionState::parse(&condition.status),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            since: condition.last_transition_time.0,
        })
    });
    let phase = match object.phase.as_str() {
        "Pending" => Some(CrrPhase::Pending),
        "Recreating" => Some(CrrPhase::Recreating),
        // Declared by OpenKruise at this level and never used: ended all the same.
        "Completed" | "Succeeded" | "Failed" => Some(CrrPhase::Completed),
        // None yet, or a word that v1alpha1, which has no list of them, let somebody write: ours is written over it.
        _ => None,
    };
    CrrStatus {
        phase,
        completed_at: object.completion_time.as_ref().map(|time| time.0),
        message: object.message.clone().unwrap_or_default(),
        containers: containers.collect(),
        snapshot: snapshots.collect(),
        conditions: conditions.collect(),
    }
}

fn container_phase(phase: &str) -> ContainerPhase {
    match phase {
        "Recreating" => ContainerPhase::Recreating,
        "Succeeded" => ContainerPhase::Succeeded,
        "Failed" => ContainerPhase::Failed,
        _ => ContainerPhase::Pending,
    }
}

/// A status as a merge patch: fields that are not set are taken away.
pub fn status_json(status: &CrrStatus) -> Value {
    let states = status.containers.iter().map(|state| {
        let mut entry = json!({ "name": state.name.as_str(), "phase": state.phase });
        if state.is_killed {
            entry["isKilled"] = json!(true);
        }
        if !state.message.is_empty() {
            entry["message"] = json!(state.message);
        }
        entry
    });
    let snapshot = status.snapshot.iter().map(|entry| {
        json!({
            "name": entry.name.as_str(),
            "ready": entry.is_ready,
            "restartCount": entry.restart_count,
            "containerID": entry.container_id.to_string(),
        })
    });
    let conditions = status.conditions.iter().map(|condition| {
        json!({
            "type": condition.kind.as_str(),
            "status": condition.state.as_str(),
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": rfc3339(condition.since),
        })
    });
    let message = (!status.message.is_empty()).then_some(&status.message);
    json!({
        "phase": status.phase,
        "completionTime": status.completed_at.map(rfc3339),
        "message": message,
        "containerRecreateStates": states.collect::<Vec<_>>(),
        "containerStatusSnapshot": (!status.snapshot.is_empty()).then(|| snapshot.collect::<Vec<_>>()),
        "conditions": conditions.collect::<Vec<_>>(),
    })
}

/// Kubernetes' times have whole seconds.
fn rfc3339(time: Timestamp) -> String {
    time.strftime("%FT%TZ").to_string()
}

/// Seconds as the API gives them; a negative number, which admission refuses, is none.
fn seconds(seconds: Option<i64>) -> Option<Duration> {
    let seconds = u64::try_from(seconds?).ok();
    seconds.map(Duration::from_secs)
}

#[cfg(test)]
mod tests;

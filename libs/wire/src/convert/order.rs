//! Orders, answers and reports.

use std::time::Duration;

use model::{
    ids::ContainerId,
    order::{
        Answer, HttpScheme, Instance, Order, Outcome, PreStop, Refusal, Report, Sending, Stop, Verb,
    },
    order_id::OrderId,
};
use prost::Message as _;

use super::{InvalidMessage, decode, filled, milliseconds, not_empty, some};
use crate::{
    Message, ReportAck,
    generated::{self as proto, order_answer, pre_stop, refused, stop_outcome},
};

impl Message for Sending {
    fn encode(&self) -> Vec<u8> {
        let Order {
            id,
            instance,
            reason,
            verb,
        } = &self.order;
        let order = proto::Order {
            id: id.to_string(),
            attempt: self.attempt,
            reason: reason.clone(),
            verb: Some(verb_to(verb, instance_to(instance))),
        };
        order.encode_to_vec()
    }

    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        let order: proto::Order = decode(bytes)?;
        let (instance, verb) = verb_from(some("verb", order.verb)?)?;
        let id = id_from("id", &order.id)?;
        if id.task != verb.task() || id.container != instance.container {
            return Err(InvalidMessage::Contradiction { field: "id" });
        }
        Ok(Self {
            order: Order {
                id,
                instance,
                reason: order.reason,
                verb,
            },
            attempt: order.attempt,
        })
    }
}

impl Message for Answer {
    fn encode(&self) -> Vec<u8> {
        let (answer, done_container_id) = match self {
            Self::Accepted => (order_answer::Answer::Accepted(proto::Accepted {}), None),
            Self::Refused(refusal) => (order_answer::Answer::Refused(refusal_to(refusal)), None),
            Self::Done {
                container_id,
                outcome: Outcome::Removed { count },
            } => {
                let dropped = proto::Dropped { count: *count };
                (order_answer::Answer::Dropped(dropped), container_id.clone())
            }
            Self::Done {
                container_id,
                outcome,
            } => {
                let done = order_answer::Answer::Done(outcome_to(outcome));
                (done, container_id.clone())
            }
        };
        proto::OrderAnswer {
            answer: Some(answer),
            done_container_id: done_container_id
                .map(|id| id.to_string())
                .unwrap_or_default(),
        }
        .encode_to_vec()
    }

    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        let answer: proto::OrderAnswer = decode(bytes)?;
        let done = |outcome| Self::Done {
            container_id: not_empty(answer.done_container_id).map(ContainerId::new),
            outcome,
        };
        Ok(match some("answer", answer.answer)? {
            order_answer::Answer::Accepted(_) => Self::Accepted,
            order_answer::Answer::Refused(refused) => Self::Refused(refusal_from(refused)?),
            order_answer::Answer::Done(outcome) => done(outcome_from(outcome)?),
            order_answer::Answer::Dropped(dropped) => done(Outcome::Removed {
                count: dropped.count,
            }),
        })
    }
}

impl Message for Report {
    fn encode(&self) -> Vec<u8> {
        let report = proto::StopReport {
            order: self.order.to_string(),
            attempt: self.attempt,
            sequence: self.sequence,
            instance: Some(instance_to(&self.instance)),
            outcome: Some(outcome_to(&self.outcome)),
        };
        report.encode_to_vec()
    }

    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        let report: proto::StopReport = decode(bytes)?;
        Ok(Self {
            order: id_from("order", &report.order)?,
            attempt: report.attempt,
            sequence: report.sequence,
            instance: instance_from(some("instance", report.instance)?)?,
            outcome: outcome_from(some("outcome", report.outcome)?)?,
        })
    }
}

impl Message for ReportAck {
    fn encode(&self) -> Vec<u8> {
        proto::ReportAck {}.encode_to_vec()
    }

    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        decode::<proto::ReportAck>(bytes).map(|_| Self)
    }
}

fn verb_to(verb: &Verb, instance: proto::Instance) -> proto::order::Verb {
    let instance = Some(instance);
    match verb {
        Verb::Stop(stop) => proto::order::Verb::StopContainer(proto::StopContainer {
            instance,
            grace_milliseconds: milliseconds(stop.grace),
            pre_stop: stop.pre_stop.as_ref().map(hook_to),
            // 0 means no limit, so a limit that has passed is sent as 1.
            begin_within_milliseconds: stop
                .begin_within
                .map_or(0, |limit| milliseconds(limit).max(1)),
        }),
        Verb::RemoveDeadInstances => {
            proto::order::Verb::DropDeadInstances(proto::DropDeadInstances { instance })
        }
    }
}

fn verb_from(verb: proto::order::Verb) -> Result<(Instance, Verb), InvalidMessage> {
    Ok(match verb {
        proto::order::Verb::StopContainer(stop) => {
            let instance = instance_from(some("stop_container.instance", stop.instance)?)?;
            let limit = Some(stop.begin_within_milliseconds).filter(|limit| *limit > 0);
            let stop = Stop {
                grace: Duration::from_millis(stop.grace_milliseconds),
                pre_stop: stop.pre_stop.map(hook_from).transpose()?,
                begin_within: limit.map(Duration::from_millis),
            };
            (instance, Verb::Stop(stop))
        }
        proto::order::Verb::DropDeadInstances(removal) => {
            let instance = some("drop_dead_instances.instance", removal.instance)?;
            (instance_from(instance)?, Verb::RemoveDeadInstances)
        }
    })
}

fn id_from(field: &'static str, id: &str) -> Result<OrderId, InvalidMessage> {
    id.parse()
        .map_err(|source| InvalidMessage::OrderId { field, source })
}

fn instance_to(instance: &Instance) -> proto::Instance {
    proto::Instance {
        namespace: instance.namespace.to_string(),
        pod: instance.pod.to_string(),
        pod_uid: instance.pod_uid.to_string(),
        container: instance.container.to_string(),
        container_id: instance.container_id.to_string(),
        restart_count: instance.restart_count,
    }
}

fn instance_from(instance: proto::Instance) -> Result<Instance, InvalidMessage> {
    Ok(Instance {
        namespace: filled("instance.namespace", &instance.namespace)?,
        pod: filled("instance.pod", &instance.pod)?,
        pod_uid: filled("instance.pod_uid", &instance.pod_uid)?,
        container: filled("instance.container", &instance.container)?,
        container_id: filled("instance.container_id", &instance.container_id)?,
        restart_count: instance.restart_count,
    })
}

fn hook_to(hook: &PreStop) -> proto::PreStop {
    let hook = match hook.clone() {
        PreStop::Exec { command } => pre_stop::Hook::Exec(pre_stop::Exec { command }),
        PreStop::HttpGet {
            scheme,
            host,
            port,
            path,
            headers,
        } => {
            let headers = headers
                .into_iter()
                .map(|(name, value)| pre_stop::Header { name, value });
            pre_stop::Hook::HttpGet(pre_stop::HttpGet {
                https: scheme == HttpScheme::Https,
                host: host.unwrap_or_default(),
                port: u32::from(port),
                path,
                headers: headers.collect(),
            })
        }
        PreStop::TcpSocket { host, port } => pre_stop::Hook::TcpSocket(pre_stop::TcpSocket {
            host: host.unwrap_or_default(),
            port: u32::from(port),
        }),
        PreStop::Sleep { duration } => pre_stop::Hook::Sleep(pre_stop::Sleep {
            milliseconds: milliseconds(duration),
        }),
    };
    proto::PreStop { hook: Some(hook) }
}

fn hook_from(hook: proto::PreStop) -> Result<PreStop, InvalidMessage> {
    Ok(match some("pre_stop.hook", hook.hook)? {
        pre_stop::Hook::Exec(exec) => PreStop::Exec {
            command: exec.command,
        },
        pre_stop::Hook::HttpGet(get) => {
            let headers = get
                .headers
                .into_iter()
                .map(|header| (header.name, header.value));
            PreStop::HttpGet {
                scheme: if get.https {
                    HttpScheme::Https
                } else {
                    HttpScheme::Http
                },
                host: not_empty(get.host),
                port: port_from("pre_stop.http_get.port", get.port)?,
                path: get.path,
                headers: headers.collect(),
            }
        }
        pre_stop::Hook::TcpSocket(socket) => PreStop::TcpSocket {
            host: not_empty(socket.host),
            port: port_from("pre_stop.tcp_socket.port", socket.port)?,
        },
        pre_stop::Hook::Sleep(sleep) => PreStop::Sleep {
            duration: Duration::from_millis(sleep.milliseconds),
        },
    })
}

fn port_from(field: &'static str, port: u32) -> Result<u16, InvalidMessage> {
    u16::try_from(port).map_err(|_| InvalidMessage::OutOfRange {
        field,
        value: u64::from(port),
    })
}

fn refusal_to(refusal: &Refusal) -> proto::Refused {
    let nothing = refused::Nothing {};
    let reason = match refusal.clone() {
        Refusal::NoSuchPod => refused::Reason::NoSuchPod(nothing),
        Refusal::NoSuchContainer => refused::Reason::NoSuchContainer(nothing),
        Refusal::OtherInstance {
            container_id,
            restart_count,
        } => {
            let container_id = container_id.to_string();
            refused::Reason::OtherInstance(refused::OtherInstance {
                container_id,
                restart_count,
            })
        }
        Refusal::AlreadyExited => refused::Reason::AlreadyExited(nothing),
        Refusal::StillRunning => refused::Reason::StillRunning(nothing),
        Refusal::StopUnfinished { order } => refused::Reason::StopUnfinished(order.to_string()),
        Refusal::RuntimeUnavailable { message } => refused::Reason::RuntimeUnavailable(message),
        Refusal::Invalid { message } => refused::Reason::Invalid(message),
    };
    proto::Refused {
        reason: Some(reason),
    }
}

fn refusal_from(refused: proto::Refused) -> Result<Refusal, InvalidMessage> {
    Ok(match some("refused.reason", refused.reason)? {
        refused::Reason::NoSuchPod(_) => Refusal::NoSuchPod,
        refused::Reason::NoSuchContainer(_) => Refusal::NoSuchContainer,
        refused::Reason::OtherInstance(other) => Refusal::OtherInstance {
            container_id: other.container_id.as_str().into(),
            restart_count: other.restart_count,
        },
        refused::Reason::AlreadyExited(_) => Refusal::AlreadyExited,
        refused::Reason::StillRunning(_) => Refusal::StillRunning,
        refused::Reason::StopUnfinished(order) => Refusal::StopUnfinished {
            order: id_from("refused.stop_unfinished", &order)?,
        },
        refused::Reason::RuntimeUnavailable(message) => Refusal::RuntimeUnavailable { message },
        refused::Reason::Invalid(message) => Refusal::Invalid { message },
    })
}

fn outcome_to(outcome: &Outcome) -> proto::StopOutcome {
    let outcome = match outcome.clone() {
        Outcome::Stopped { hook_error } => {
            let hook_error = hook_error.unwrap_or_default();
            stop_outcome::Outcome::Stopped(stop_outcome::Stopped { hook_error })
        }
        Outcome::Gone => stop_outcome::Outcome::Gone(stop_outcome::Gone {}),
        Outcome::Failed { message } => {
            stop_outcome::Outcome::Failed(stop_outcome::Failed { message })
        }
        Outcome::Removed { count } => stop_outcome::Outcome::Removed(proto::Dropped { count }),
    };
    proto::StopOutcome {
        outcome: Some(outcome),
    }
}

fn outcome_from(outcome: proto::StopOutcome) -> Result<Outcome, InvalidMessage> {
    Ok(match some("outcome", outcome.outcome)? {
        stop_outcome::Outcome::Stopped(stopped) => Outcome::Stopped {
            hook_error: not_empty(stopped.hook_error),
        },
        stop_outcome::Outcome::Gone(_) => Outcome::Gone,
        stop_outcome::Outcome::Failed(failed) => Outcome::Failed {
            message: failed.message,
        },
        stop_outcome::Outcome::Removed(removed) => Outcome::Removed {
            count: removed.count,
        },
    })
}

#[cfg(test)]
mod tests;

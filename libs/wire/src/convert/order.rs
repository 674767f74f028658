//! Orders, answers and reports.

use std::time::Duration;

use model::order::{
    DropAnswer, DropOrder, HttpScheme, Instance, NodeAnswer, NodeOrder, OrderAnswer, PreStop,
    Refusal, StopOrder, StopOutcome, StopReport,
};
use prost::Message as _;

use super::{InvalidMessage, decode, filled, milliseconds, not_empty, some};
use crate::{
    Message,
    generated::{self as proto, order::Verb, order_answer, pre_stop, refused, stop_outcome},
};

impl Message for StopOrder {
    fn encode(&self) -> Vec<u8> {
        let stop = proto::StopContainer {
            instance: Some(instance_to(&self.instance)),
            grace_milliseconds: milliseconds(self.grace),
            pre_stop: self.pre_stop.as_ref().map(hook_to),
            // A limit that is over is not none.
            begin_within_milliseconds: self
                .begin_within
                .map_or(0, |limit| milliseconds(limit).max(1)),
        };
        let order = proto::Order {
            id: self.id.to_string(),
            attempt: self.attempt,
            reason: self.reason.clone(),
            verb: Some(Verb::StopContainer(stop)),
        };
        order.encode_to_vec()
    }

    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        match NodeOrder::decode(bytes)? {
            NodeOrder::Stop(order) => Ok(order),
            NodeOrder::Drop(_) => Err(InvalidMessage::Missing { field: "verb" }),
        }
    }
}

impl Message for DropOrder {
    fn encode(&self) -> Vec<u8> {
        let drop = proto::DropDeadInstances {
            instance: Some(instance_to(&self.instance)),
        };
        let order = proto::Order {
            id: self.id.to_string(),
            attempt: self.attempt,
            reason: self.reason.clone(),
            verb: Some(Verb::DropDeadInstances(drop)),
        };
        order.encode_to_vec()
    }

    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        match NodeOrder::decode(bytes)? {
            NodeOrder::Drop(order) => Ok(order),
            NodeOrder::Stop(_) => Err(InvalidMessage::Missing { field: "verb" }),
        }
    }
}

impl Message for NodeOrder {
    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Stop(order) => order.encode(),
            Self::Drop(order) => order.encode(),
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        let order: proto::Order = decode(bytes)?;
        let verb = some("verb", order.verb)?;
        let id = filled("id", order.id)?.as_str().into();
        let (attempt, reason) = (order.attempt, order.reason);
        Ok(match verb {
            Verb::StopContainer(stop) => Self::Stop(StopOrder {
                id,
                attempt,
                instance: instance_from(some("stop_container.instance", stop.instance)?)?,
                grace: Duration::from_millis(stop.grace_milliseconds),
                pre_stop: stop.pre_stop.map(hook_from).transpose()?,
                begin_within: Some(stop.begin_within_milliseconds)
                    .filter(|limit| *limit > 0)
                    .map(Duration::from_millis),
                reason,
            }),
            Verb::DropDeadInstances(drop) => Self::Drop(DropOrder {
                id,
                attempt,
                instance: instance_from(some("drop_dead_instances.instance", drop.instance)?)?,
                reason,
            }),
        })
    }
}

impl Message for NodeAnswer {
    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Stop(answer) => answer.encode(),
            Self::Drop(answer) => answer.encode(),
        }
    }

    /// A refusal alone does not say of what it is; it is read as that of a stop.
    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        OrderAnswer::decode(bytes)
            .map(Self::Stop)
            .or_else(|_| DropAnswer::decode(bytes).map(Self::Drop))
    }
}

impl Message for DropAnswer {
    fn encode(&self) -> Vec<u8> {
        let answer = match self {
            Self::Dropped { count } => {
                order_answer::Answer::Dropped(proto::Dropped { count: *count })
            }
            Self::Refused(refusal) => order_answer::Answer::Refused(refusal_to(refusal)),
        };
        proto::OrderAnswer {
            answer: Some(answer),
            ..proto::OrderAnswer::default()
        }
        .encode_to_vec()
    }

    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        let answer: proto::OrderAnswer = decode(bytes)?;
        match some("answer", answer.answer)? {
            order_answer::Answer::Dropped(dropped) => Ok(Self::Dropped {
                count: dropped.count,
            }),
            order_answer::Answer::Refused(refused) => Ok(Self::Refused(refusal_from(refused)?)),
            order_answer::Answer::Accepted(_) | order_answer::Answer::Done(_) => {
                Err(InvalidMessage::Missing { field: "dropped" })
            }
        }
    }
}

impl Message for OrderAnswer {
    fn encode(&self) -> Vec<u8> {
        let answer = match self {
            Self::Accepted => order_answer::Answer::Accepted(proto::Accepted {}),
            Self::Refused(refusal) => order_answer::Answer::Refused(refusal_to(refusal)),
            Self::Done { outcome, .. } => order_answer::Answer::Done(outcome_to(outcome)),
        };
        let done_container_id = match self {
            Self::Done { container_id, .. } => container_id.to_string(),
            Self::Accepted | Self::Refused(_) => String::new(),
        };
        let answer = Some(answer);
        proto::OrderAnswer {
            answer,
            done_container_id,
        }
        .encode_to_vec()
    }

    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        let answer: proto::OrderAnswer = decode(bytes)?;
        Ok(match some("answer", answer.answer)? {
            order_answer::Answer::Accepted(_) => Self::Accepted,
            order_answer::Answer::Refused(refused) => Self::Refused(refusal_from(refused)?),
            order_answer::Answer::Done(outcome) => Self::Done {
                container_id: filled("done_container_id", answer.done_container_id)?
                    .as_str()
                    .into(),
                outcome: outcome_from(outcome)?,
            },
            order_answer::Answer::Dropped(_) => {
                return Err(InvalidMessage::Missing { field: "done" });
            }
        })
    }
}

impl Message for StopReport {
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
            order: filled("order", report.order)?.as_str().into(),
            attempt: report.attempt,
            sequence: report.sequence,
            instance: instance_from(some("instance", report.instance)?)?,
            outcome: outcome_from(some("outcome", report.outcome)?)?,
        })
    }
}

/// The acknowledgement of a report says nothing but that it came.
impl Message for () {
    fn encode(&self) -> Vec<u8> {
        proto::ReportAck {}.encode_to_vec()
    }

    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        decode::<proto::ReportAck>(bytes).map(|_| ())
    }
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
        namespace: filled("instance.namespace", instance.namespace)?
            .as_str()
            .into(),
        pod: filled("instance.pod", instance.pod)?.as_str().into(),
        pod_uid: filled("instance.pod_uid", instance.pod_uid)?
            .as_str()
            .into(),
        container: filled("instance.container", instance.container)?
            .as_str()
            .into(),
        container_id: filled("instance.container_id", instance.container_id)?
            .as_str()
            .into(),
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
            order: order.as_str().into(),
        },
        refused::Reason::RuntimeUnavailable(message) => Refusal::RuntimeUnavailable { message },
        refused::Reason::Invalid(message) => Refusal::Invalid { message },
    })
}

fn outcome_to(outcome: &StopOutcome) -> proto::StopOutcome {
    let outcome = match outcome.clone() {
        StopOutcome::Stopped { hook_error } => {
            let hook_error = hook_error.unwrap_or_default();
            stop_outcome::Outcome::Stopped(stop_outcome::Stopped { hook_error })
        }
        StopOutcome::Gone => stop_outcome::Outcome::Gone(stop_outcome::Gone {}),
        StopOutcome::Failed { message } => {
            stop_outcome::Outcome::Failed(stop_outcome::Failed { message })
        }
    };
    proto::StopOutcome {
        outcome: Some(outcome),
    }
}

fn outcome_from(outcome: proto::StopOutcome) -> Result<StopOutcome, InvalidMessage> {
    Ok(match some("outcome", outcome.outcome)? {
        stop_outcome::Outcome::Stopped(stopped) => StopOutcome::Stopped {
            hook_error: not_empty(stopped.hook_error),
        },
        stop_outcome::Outcome::Gone(_) => StopOutcome::Gone,
        stop_outcome::Outcome::Failed(failed) => StopOutcome::Failed {
            message: failed.message,
        },
    })
}

#[cfg(test)]
mod tests;

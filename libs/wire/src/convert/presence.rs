//! Presence, and questions about it. A presence message does not name its node: the subject does.

use std::time::Duration;

use model::{
    ids::{CrrName, Namespace, NodeName, PodKey, PodName},
    presence::{LastSeen, Presence, PresenceAnswer, PresenceQuestion, Runtime},
};
use prost::Message as _;

use super::{InvalidMessage, decode, filled, milliseconds, not_empty, some};
use crate::{
    Message,
    generated::{self as proto, last_seen},
};

/// Encodes a sign of life.
pub fn encode_presence(presence: &Presence) -> Vec<u8> {
    let runtime = presence.runtime.clone();
    let (name, version) = runtime
        .map(|runtime| (runtime.name, runtime.version))
        .unwrap_or_default();
    let message = proto::Presence {
        boot_id: presence.boot_id.to_string(),
        version: presence.version.clone(),
        runtime_name: name,
        runtime_version: version,
        orders_held: presence.orders_held,
    };
    message.encode_to_vec()
}

/// Decodes a sign of life of the node that the subject names.
///
/// # Errors
/// The bytes are no such message, or the boot id is missing.
pub fn decode_presence(node: NodeName, bytes: &[u8]) -> Result<Presence, InvalidMessage> {
    let message: proto::Presence = decode(bytes)?;
    let runtime = Runtime {
        name: message.runtime_name,
        version: message.runtime_version,
    };
    Ok(Presence {
        node,
        boot_id: filled("boot_id", &message.boot_id)?,
        version: message.version,
        runtime: (!runtime.name.is_empty()).then_some(runtime),
        orders_held: message.orders_held,
    })
}

impl Message for PresenceQuestion {
    fn encode(&self) -> Vec<u8> {
        let pod = self.pod.as_ref();
        proto::AskPresence {
            node: self.node.to_string(),
            namespace: pod.map(|pod| pod.namespace.to_string()).unwrap_or_default(),
            pod: pod.map(|pod| pod.name.to_string()).unwrap_or_default(),
        }
        .encode_to_vec()
    }

    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        let question: proto::AskPresence = decode(bytes)?;
        let pod = not_empty(question.pod).map(|name| PodKey {
            namespace: Namespace::new(question.namespace),
            name: PodName::new(name),
        });
        Ok(Self {
            node: filled("node", &question.node)?,
            pod,
        })
    }
}

impl Message for PresenceAnswer {
    fn encode(&self) -> Vec<u8> {
        let last_seen = match self.last_seen {
            LastSeen::Ago(ago) => last_seen::LastSeen::AgoMilliseconds(milliseconds(ago)),
            LastSeen::NotFor(time) => last_seen::LastSeen::NotForMilliseconds(milliseconds(time)),
        };
        proto::LastSeen {
            last_seen: Some(last_seen),
            active_requests: self.active_crrs.iter().map(ToString::to_string).collect(),
        }
        .encode_to_vec()
    }

    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        let answer: proto::LastSeen = decode(bytes)?;
        let last_seen = match some("last_seen", answer.last_seen)? {
            last_seen::LastSeen::AgoMilliseconds(ago) => LastSeen::Ago(Duration::from_millis(ago)),
            last_seen::LastSeen::NotForMilliseconds(time) => {
                LastSeen::NotFor(Duration::from_millis(time))
            }
        };
        let active = answer.active_requests.into_iter();
        Ok(Self {
            last_seen,
            active_crrs: active.map(CrrName::new).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use model::ids::BootId;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn presence_comes_back_as_it_went_with_the_node_of_its_subject(
            boot_id in ".+", version in ".*", orders_held in any::<u32>(),
            runtime in proptest::option::of((".+", ".*")),
        ) {
            let presence = Presence {
                node: "node-1.example".into(),
                boot_id: BootId::new(boot_id),
                version,
                runtime: runtime.map(|(name, version)| Runtime { name, version }),
                orders_held,
            };
            let decoded = decode_presence("node-1.example".into(), &encode_presence(&presence));
            prop_assert_eq!(decoded.unwrap(), presence);
        }

        #[test]
        fn bytes_from_anywhere_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _presence = decode_presence("a".into(), &bytes);
            let _question = PresenceQuestion::decode(&bytes);
            let _answer = PresenceAnswer::decode(&bytes);
            let _acknowledgement = crate::ReportAck::decode(&bytes);
        }
    }

    #[test]
    fn answers_come_back_as_they_went() {
        for last_seen in [
            LastSeen::Ago(Duration::ZERO),
            LastSeen::Ago(Duration::from_millis(5)),
            LastSeen::NotFor(Duration::from_secs(60)),
        ] {
            for active_crrs in [vec![], vec![CrrName::new("a"), CrrName::new("b")]] {
                let answer = PresenceAnswer {
                    last_seen,
                    active_crrs,
                };
                assert_eq!(PresenceAnswer::decode(&answer.encode()).unwrap(), answer);
            }
        }
    }

    #[test]
    fn a_question_comes_back_as_it_went_and_names_a_node() {
        let error = PresenceQuestion::decode(&[]).unwrap_err();
        assert!(matches!(error, InvalidMessage::Missing { field: "node" }));
        let pod = PodKey {
            namespace: "default".into(),
            name: "web".into(),
        };
        for pod in [None, Some(pod)] {
            let question = PresenceQuestion {
                node: "a.b".into(),
                pod,
            };
            assert_eq!(
                PresenceQuestion::decode(&question.encode()).unwrap(),
                question
            );
        }
    }
}

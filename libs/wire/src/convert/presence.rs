//! Presence, and questions about it. A presence message does not name its node: the subject does.

use std::time::Duration;

use model::{
    ids::{BootId, NodeName},
    presence::{LastSeen, Presence, Runtime},
};
use prost::Message as _;

use super::{InvalidMessage, decode, filled, milliseconds, some};
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
        boot_id: BootId::new(filled("boot_id", message.boot_id)?),
        version: message.version,
        runtime: (!runtime.name.is_empty()).then_some(runtime),
        orders_held: message.orders_held,
    })
}

/// The question "when was that node last seen?".
impl Message for NodeName {
    fn encode(&self) -> Vec<u8> {
        proto::AskPresence {
            node: self.to_string(),
        }
        .encode_to_vec()
    }

    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        let question: proto::AskPresence = decode(bytes)?;
        Ok(Self::new(filled("node", question.node)?))
    }
}

impl Message for LastSeen {
    fn encode(&self) -> Vec<u8> {
        let last_seen = match self {
            Self::Ago(ago) => last_seen::LastSeen::AgoMilliseconds(milliseconds(*ago)),
            Self::NotFor(time) => last_seen::LastSeen::NotForMilliseconds(milliseconds(*time)),
        };
        proto::LastSeen {
            last_seen: Some(last_seen),
        }
        .encode_to_vec()
    }

    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        let answer: proto::LastSeen = decode(bytes)?;
        Ok(match some("last_seen", answer.last_seen)? {
            last_seen::LastSeen::AgoMilliseconds(ago) => Self::Ago(Duration::from_millis(ago)),
            last_seen::LastSeen::NotForMilliseconds(time) => {
                Self::NotFor(Duration::from_millis(time))
            }
        })
    }
}

#[cfg(test)]
mod tests {
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
            let _question = NodeName::decode(&bytes);
            let _answer = LastSeen::decode(&bytes);
            let _acknowledgement = <() as Message>::decode(&bytes);
        }
    }

    #[test]
    fn last_seen_comes_back_as_it_went() {
        for answer in [
            LastSeen::Ago(Duration::ZERO),
            LastSeen::Ago(Duration::from_millis(5)),
            LastSeen::NotFor(Duration::from_secs(60)),
        ] {
            assert_eq!(LastSeen::decode(&answer.encode()).unwrap(), answer);
        }
    }

    #[test]
    fn a_question_about_no_node_is_none() {
        let error = NodeName::decode(&[]).unwrap_err();
        assert!(matches!(error, InvalidMessage::Missing { field: "node" }));
        assert_eq!(
            NodeName::decode(&NodeName::new("a.b").encode()).unwrap(),
            NodeName::new("a.b")
        );
    }
}

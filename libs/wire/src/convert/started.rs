//! A node's word that a container has started. The message does not name its node: the subject does.

use model::{ids::PodKey, launch::Started};
use prost::Message as _;

use super::{InvalidMessage, decode, filled};
use crate::{Message, generated as proto};

impl Message for Started {
    fn encode(&self) -> Vec<u8> {
        proto::Started {
            namespace: self.pod.namespace.to_string(),
            pod: self.pod.name.to_string(),
            pod_uid: self.pod_uid.to_string(),
            container: self.container.to_string(),
            container_id: self.container_id.to_string(),
        }
        .encode_to_vec()
    }

    fn decode(bytes: &[u8]) -> Result<Self, InvalidMessage> {
        let started: proto::Started = decode(bytes)?;
        Ok(Self {
            pod: PodKey {
                namespace: filled("namespace", &started.namespace)?,
                name: filled("pod", &started.pod)?,
            },
            pod_uid: filled("pod_uid", &started.pod_uid)?,
            container: filled("container", &started.container)?,
            container_id: filled("container_id", &started.container_id)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use model::ids::{ContainerId, ContainerName, Namespace, PodName, PodUid};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_start_comes_back_as_it_went(words in prop::collection::vec(".+", 5)) {
            let started = Started {
                pod: PodKey { namespace: Namespace::new(&*words[0]), name: PodName::new(&*words[1]) },
                pod_uid: PodUid::new(&*words[2]),
                container: ContainerName::new(&*words[3]),
                container_id: ContainerId::new(&*words[4]),
            };
            prop_assert_eq!(Started::decode(&started.encode()).unwrap(), started);
        }

        #[test]
        fn bytes_from_anywhere_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _started = Started::decode(&bytes);
        }
    }

    #[test]
    fn half_a_start_is_none() {
        let error = Started::decode(&[]).unwrap_err();
        assert!(matches!(
            error,
            InvalidMessage::Missing { field: "namespace" }
        ));
    }
}

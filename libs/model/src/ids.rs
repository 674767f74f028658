//! Newtypes for every name and id, so that two strings are never swapped.
//!
//! Owns the ids' parsing. It does not check that the thing named exists.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Declares a newtype over `String` that displays as its content.
macro_rules! string_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(value: impl Into<String>) -> Self {
                Self(value.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(value: &str) -> Self {
                Self::new(value)
            }
        }
    )*};
}

string_id! {
    /// A Kubernetes namespace.
    Namespace;
    /// `metadata.name` of a pod.
    PodName;
    /// `metadata.uid` of a pod.
    PodUid;
    /// `metadata.name` of a node: a DNS-1123 subdomain, so it may hold dots.
    NodeName;
    /// `metadata.name` of a ContainerRecreateRequest.
    CrrName;
    /// `metadata.uid` of a ContainerRecreateRequest.
    CrrUid;
    /// A container's name in its pod.
    ContainerName;
    /// A container instance's id as CRI spells it: without the runtime's scheme.
    ContainerId;
    /// Names one order for ever: every repetition of it carries the same id.
    OrderId;
    /// The kernel's boot id: another one means the node was restarted.
    BootId;
}

impl OrderId {
    /// The id of the one stop that a CRR may cause to one of its containers.
    ///
    /// It is derived, not drawn, so that a scheduler that lost its memory names the same order again.
    pub fn stop(crr_uid: &CrrUid, container: &ContainerName) -> Self {
        Self::new(format!("stop/{crr_uid}/{container}"))
    }

    /// The id of a CRR's drop of one container's dead instances.
    pub fn drop_dead(crr_uid: &CrrUid, container: &ContainerName) -> Self {
        Self::new(format!("drop/{crr_uid}/{container}"))
    }

    /// The CRR whose order it is, if it is a CRR's.
    pub fn crr_uid(&self) -> Option<CrrUid> {
        let (_, rest) = self.as_str().split_once('/')?;
        let (uid, _) = rest.split_once('/')?;
        Some(CrrUid::new(uid))
    }
}

/// A container id as pod status spells it: `<runtime>://<id>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeContainerId {
    /// The runtime's name, such as `containerd`.
    pub runtime: String,
    pub id: ContainerId,
}

/// A container id that is not `<runtime>://<id>`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("container id {0:?} is not of the form <runtime>://<id>")]
pub struct InvalidContainerId(pub String);

impl std::str::FromStr for RuntimeContainerId {
    type Err = InvalidContainerId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once("://") {
            Some((runtime, id)) if !runtime.is_empty() && !id.is_empty() => Ok(Self {
                runtime: runtime.to_owned(),
                id: ContainerId::new(id),
            }),
            _ => Err(InvalidContainerId(text.to_owned())),
        }
    }
}

impl fmt::Display for RuntimeContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.runtime, self.id)
    }
}

/// A namespaced name of a CRR.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CrrKey {
    pub namespace: Namespace,
    pub name: CrrName,
}

impl fmt::Display for CrrKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A namespaced name of a pod. Two pods may bear it one after the other: compare `PodUid` as well.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKey {
    pub namespace: Namespace,
    pub name: PodName,
}

impl fmt::Display for PodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_a_status_container_id() {
        let id: RuntimeContainerId = "containerd://abc".parse().unwrap();
        assert_eq!(
            (id.runtime.as_str(), id.id.as_str(), id.to_string().as_str()),
            ("containerd", "abc", "containerd://abc")
        );
    }

    #[test]
    fn refuses_half_a_container_id() {
        for text in ["", "abc", "://abc", "containerd://"] {
            assert_eq!(
                text.parse::<RuntimeContainerId>(),
                Err(InvalidContainerId(text.to_owned()))
            );
        }
    }
}

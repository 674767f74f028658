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
    /// The kernel's boot id: another one means the node was restarted.
    BootId;
}

/// A container id as pod status spells it: `<runtime>://<id>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeContainerId {
    pub runtime: String,
    pub id: ContainerId,
}

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

/// A namespaced name. Two objects may bear it one after the other: compare their uids as well.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<N> {
    pub namespace: Namespace,
    pub name: N,
}

pub type CrrKey = Key<CrrName>;
pub type PodKey = Key<PodName>;

impl<N: fmt::Display> fmt::Display for Key<N> {
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

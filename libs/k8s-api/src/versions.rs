//! ContainerRecreateRequests from one API version to the other.
//!
//! Owns what v1alpha1 keeps in annotations and v1beta1 in its status, and the envelope in which the API server
//! asks. It works on JSON and not on types: what this release does not know passes through.
//!
//! A round trip gives back what went in. Where an annotation cannot be read (OpenKruise drops it), it moves to a
//! key of ours in v1beta1 and back again: a v1beta1 reader must not see the old keys, the text may be all that
//! its author has, and the key that says so is a warning which stays on the object.

mod object;
mod review;

use std::fmt;

pub use object::{InvalidObject, convert};
pub use review::{Answer, NotAReview, answer};

/// Where admission answers conversions.
pub const CONVERT_PATH: &str = "/convert";

pub(crate) const V1ALPHA1: &str = "v1alpha1";
/// The version that is in etcd, and that our services speak.
pub(crate) const STORED: &str = "v1beta1";

/// A version of `apps.kruise.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1Alpha1,
    V1Beta1,
}

/// An `apiVersion` that is none of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is {0:?}; allowed are apps.kruise.io/{V1ALPHA1} and apps.kruise.io/{STORED}")]
pub struct UnknownVersion(pub String);

impl std::str::FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(api_version: &str) -> Result<Self, Self::Err> {
        [Self::V1Alpha1, Self::V1Beta1]
            .into_iter()
            .find(|version| version.to_string() == api_version)
            .ok_or_else(|| UnknownVersion(api_version.to_owned()))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = match self {
            Self::V1Alpha1 => V1ALPHA1,
            Self::V1Beta1 => STORED,
        };
        write!(f, "{}/{version}", model::labels::KRUISE_GROUP)
    }
}

#[cfg(test)]
mod tests;

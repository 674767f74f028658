//! Sentences of Kubernetes events that one crate writes and another one reads.

use std::{fmt, str::FromStr};

use crate::ids::{ContainerName, CrrName};

/// Message of the event `Killing` on a pod: which CRR stops a container, and who requested it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Killing {
    pub container: ContainerName,
    pub crr: CrrName,
    pub requested_by: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a stop by a ContainerRecreateRequest")]
pub struct InvalidKilling;

/// `, requested by USER`; empty without a user.
pub fn requested_by(user: Option<&str>) -> String {
    user.map(|user| format!(", requested by {user}"))
        .unwrap_or_default()
}

// === impl Killing ===

impl fmt::Display for Killing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { container, crr, .. } = self;
        let requested_by = requested_by(self.requested_by.as_deref());
        write!(
            f,
            "Stopping container {container} by ContainerRecreateRequest {crr}{requested_by}"
        )
    }
}

impl FromStr for Killing {
    type Err = InvalidKilling;

    fn from_str(message: &str) -> Result<Self, Self::Err> {
        let rest = message.strip_prefix("Stopping container ");
        let parts = rest.and_then(|rest| rest.split_once(" by ContainerRecreateRequest "));
        let (container, by) = parts.ok_or(InvalidKilling)?;
        let (crr, user) = match by.split_once(", requested by ") {
            Some((crr, user)) => (crr, Some(user.to_owned())),
            None => (by, None),
        };
        Ok(Self {
            container: container.into(),
            crr: crr.into(),
            requested_by: user,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        for requested_by in [None, Some("jane, requested by bob".to_owned())] {
            let killing = Killing {
                container: "app".into(),
                crr: "web-1".into(),
                requested_by,
            };
            assert_eq!(killing.to_string().parse(), Ok(killing));
        }
        let kubelets = "Stopping container app".parse::<Killing>();
        assert_eq!(kubelets, Err(InvalidKilling));
    }
}

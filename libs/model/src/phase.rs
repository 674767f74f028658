//! The phases of a CRR and of each container in it, spelt as the wire format spells them.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrrPhase {
    /// Waits for its turn: another CRR of the pod is active.
    Pending,
    /// Containers are being stopped and waited for.
    Recreating,
    /// Ended, well or not: only a container's own phase says which.
    Completed,
}

/// `status.containerRecreateStates[].phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContainerPhase {
    /// Not stopped yet; also while its preStop hook runs.
    Pending,
    /// The named instance is gone and the new one is not up yet.
    Recreating,
    /// The kubelet's pod status shows another instance: running, ready and up long enough.
    Succeeded,
    /// It could not be stopped, or will not come back.
    Failed,
}

impl ContainerPhase {
    /// Whether nothing will change any more.
    pub fn is_final(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed => true,
            Self::Pending | Self::Recreating => false,
        }
    }
}

//! Progress of one launch, as this leader has seen it.
//!
//! Owns which level is waited for and since when, and which launches are reported.

use model::{
    launch::{LaunchPod, Priority},
    time::Monotonic,
};

use crate::{plan::Stage, snapshot::CurrentLevel};

/// Progress of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// No level is waited for: the pod is new, blocked, or ending.
    Resting,
    /// A level is waited for, in a launch that is reported.
    Launching(CurrentLevel),
    /// A level is waited for in a pod that was launched under an earlier leader: this is not reported as a launch.
    Recovering(CurrentLevel),
    /// Every level was up: a container that goes down later belongs to no launch.
    Launched,
}

// === impl Progress ===

impl Progress {
    /// The progress after a plan found this stage.
    pub(super) fn after(self, stage: &Stage, pod: &LaunchPod, now: Monotonic) -> Self {
        let begun = |&level: &Priority| CurrentLevel { level, since: now };
        match (self, stage) {
            // Resting | Launching | Recovering => Launched
            (Self::Launched, _) | (_, Stage::Launched) => Self::Launched,
            // Launching | Recovering => Resting
            (_, Stage::Blocked | Stage::Over) => Self::Resting,
            (
                Self::Launching(current) | Self::Recovering(current),
                Stage::Waiting { level, .. },
            ) if current.level == *level => self,
            // Resting | Recovering => Recovering
            (Self::Resting | Self::Recovering(_), Stage::Waiting { level, .. })
                if pod.is_completed =>
            {
                Self::Recovering(begun(level))
            }
            // Resting | Launching | Recovering => Launching, at another level
            (_, Stage::Waiting { level, .. }) => Self::Launching(begun(level)),
        }
    }

    /// The level that is waited for.
    pub(super) fn current(self) -> Option<CurrentLevel> {
        match self {
            Self::Launching(current) | Self::Recovering(current) => Some(current),
            Self::Resting | Self::Launched => None,
        }
    }

    /// The level that is waited for in a launch that is reported.
    pub(super) fn reported(self) -> Option<CurrentLevel> {
        match self {
            Self::Launching(current) => Some(current),
            Self::Resting | Self::Recovering(_) | Self::Launched => None,
        }
    }
}

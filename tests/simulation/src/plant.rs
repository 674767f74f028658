//! Bugs planted on purpose, each a mistake that a service around a machine can make.
//!
//! Owns their names, and the scenario and the violation by which each is found.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// The executor takes any instance for the one that an order names.
    FenceIgnored,
    /// The executor does not store that a hook has ended.
    HookEndNotStored,
    /// The executor answers before it has stored.
    AnsweredBeforeStored,
    /// The executor begins with an empty journal after a crash: a repeated order is a new one.
    JournalCleared,
    /// The scheduler deletes and closes by name, also another request.
    UidNotSent,
    /// The scheduler writes a pod's gate without the version it was decided on.
    GateVersionNotSent,
    /// The scheduler's status write takes its finalizer off.
    FinalizerDropped,
    /// The scheduler takes a write that failed for done.
    FailedWriteTakenAsDone,
    /// The scheduler does not tell its machine of deleted requests.
    DeletionsDropped,
    /// The barrier-manager takes a ConfigMap for the pod's of that name, whichever pod owns it.
    MapOwnerByName,
    /// The barrier-manager reads a container that runs as ready.
    RunningReadAsReady,
}

impl Plant {
    /// Each bug, with the scenario and the violations that show it.
    pub const ALL: &[(Self, &str, &[&str])] = &[
        (Self::FenceIgnored, "queue", &["ForeignStop"]),
        (Self::HookEndNotStored, "queue", &["HookRanAgain"]),
        (
            Self::AnsweredBeforeStored,
            "simple",
            &["AnsweredUnjournaled"],
        ),
        (Self::JournalCleared, "simple", &["HookRanAgain"]),
        (
            Self::UidNotSent,
            "time to live",
            &["WrongObject", "TooEarly"],
        ),
        (Self::GateVersionNotSent, "drain", &["OtherHolderLost"]),
        (Self::FinalizerDropped, "drain", &["GateShut"]),
        (
            Self::FailedWriteTakenAsDone,
            "simple",
            &["OrderBeforeStatus"],
        ),
        (Self::DeletionsDropped, "deletion", &["NotForgotten"]),
        (
            Self::RunningReadAsReady,
            "launch and recreate",
            &["LevelTooEarly"],
        ),
        (
            Self::MapOwnerByName,
            "launch leftover",
            &["KeyInForeignMap"],
        ),
    ];
}

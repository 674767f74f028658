//! Conditions of a CRR: the questions that `kubectl wait` and a person ask of it.
//!
//! Owns their types and states. Which one holds, and why, is `crr-rules`' to say.

use jiff::Timestamp;

/// One entry of `status.conditions`; at most one of each type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub kind: ConditionType,
    pub state: ConditionState,
    /// One CamelCase word for programs.
    pub reason: String,
    /// A sentence that a person can act on.
    pub message: String,
    /// When `state` last changed; whole seconds.
    pub since: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionType {
    /// Admission checked and completed the request.
    Accepted,
    /// The node has answered an order.
    Dispatched,
    /// The pod is held NotReady; its time starts the drain (OpenKruise's name).
    PreRecreateGrace,
    /// Every container is recreated.
    Succeeded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionState {
    True,
    False,
    Unknown,
}

impl ConditionType {
    pub const ALL: [Self; 4] = [
        Self::Accepted,
        Self::Dispatched,
        Self::PreRecreateGrace,
        Self::Succeeded,
    ];

    /// As the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "Accepted",
            Self::Dispatched => "Dispatched",
            Self::PreRecreateGrace => "PreRecreateGrace",
            Self::Succeeded => "Succeeded",
        }
    }

    /// Reads the API's spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl ConditionState {
    /// As the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// Reads the API's spelling; what is neither True nor False is Unknown.
    pub fn parse(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

//! The name of an order: who ordered it, for which object, and which container it is about.
//!
//! Owns its spelling on the bus and in the journal. An id is derived from what is ordered and never drawn, so that a leader
//! without memory sends the same order again (ADR 0003).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::ids::{ContainerName, CrrUid, PodUid};

/// Names one order for ever: every repetition carries the same id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OrderId {
    pub owner: Owner,
    pub task: Task,
    pub container: ContainerName,
}

/// The object for which an order is given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A ContainerRecreateRequest.
    Crr(CrrUid),
    /// A pod whose sidecars are ended.
    Sidecars(PodUid),
}

/// The controller that gives an order: its reports go to this controller only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Orderer {
    /// The crr-scheduler.
    Crr,
    /// The barrier-manager.
    Sidecar,
}

/// The part of an id that tells two orders for one container apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    Stop,
    RemoveDeadInstances,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("order id {0:?} is not of the form [sidecar.](stop|drop)/<uid>/<container>")]
pub struct InvalidOrderId(pub String);

// === impl OrderId ===

impl OrderId {
    pub fn new(owner: Owner, task: Task, container: ContainerName) -> Self {
        Self {
            owner,
            task,
            container,
        }
    }

    /// The controller that gave the order.
    pub fn orderer(&self) -> Orderer {
        match &self.owner {
            Owner::Crr(_) => Orderer::Crr,
            Owner::Sidecars(_) => Orderer::Sidecar,
        }
    }

    /// The CRR for which the order is given, if it is one.
    pub fn crr_uid(&self) -> Option<&CrrUid> {
        match &self.owner {
            Owner::Crr(uid) => Some(uid),
            Owner::Sidecars(_) => None,
        }
    }
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefix, uid) = match &self.owner {
            Owner::Crr(uid) => ("", uid.as_str()),
            Owner::Sidecars(uid) => ("sidecar.", uid.as_str()),
        };
        let task = match self.task {
            Task::Stop => "stop",
            Task::RemoveDeadInstances => "drop",
        };
        write!(f, "{prefix}{task}/{uid}/{}", self.container)
    }
}

impl FromStr for OrderId {
    type Err = InvalidOrderId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidOrderId(text.to_owned());
        let mut parts = text.splitn(3, '/');
        let mut part = || parts.next().filter(|part| !part.is_empty());
        let (Some(name), Some(uid), Some(container)) = (part(), part(), part()) else {
            return Err(invalid());
        };
        let (owner, task) = match name.strip_prefix("sidecar.") {
            Some(task) => (Owner::Sidecars(PodUid::new(uid)), task),
            None => (Owner::Crr(CrrUid::new(uid)), name),
        };
        let task = match task {
            "stop" => Task::Stop,
            "drop" => Task::RemoveDeadInstances,
            _ => return Err(invalid()),
        };
        Ok(Self::new(owner, task, ContainerName::new(container)))
    }
}

impl TryFrom<String> for OrderId {
    type Error = InvalidOrderId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<OrderId> for String {
    fn from(id: OrderId) -> Self {
        id.to_string()
    }
}

// === impl Orderer ===

impl Orderer {
    pub const ALL: [Self; 2] = [Self::Crr, Self::Sidecar];

    /// Its token in a subject.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Crr => "crr",
            Self::Sidecar => "sidecar",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written() {
        for (text, orderer) in [
            ("stop/1-2/app", Orderer::Crr),
            ("drop/1-2/app", Orderer::Crr),
            ("sidecar.stop/1-2/proxy", Orderer::Sidecar),
        ] {
            let id: OrderId = text.parse().unwrap();
            assert_eq!((id.to_string().as_str(), id.orderer()), (text, orderer));
        }
    }

    #[test]
    fn other_texts_are_no_ids() {
        for text in [
            "",
            "stop",
            "stop/1",
            "stop//app",
            "stop/1/",
            "kill/1/app",
            "x.stop/1/app",
        ] {
            assert_eq!(
                text.parse::<OrderId>(),
                Err(InvalidOrderId(text.to_owned()))
            );
        }
    }
}

//! Names and addresses of a cluster: pure arithmetic, so every part agrees without asking another.
//!
//! It touches nothing; what is created under these names is `network`'s, `cgroup`'s and `node`'s.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// What the name of everything we create on the machine starts with; cleaning up looks for it.
pub(crate) const PREFIX: &str = "podwright-";
/// Network namespace and cgroup of the control plane.
pub(crate) const CONTROL_PLANE: &str = "podwright-control-plane";
/// The API server's address on the bridge that joins the nodes.
pub(crate) const API_SERVER: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
pub(crate) const API_PORT: u16 = 6443;
/// The first address of the services' range, under which pods find the API server.
pub(crate) const API_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
/// The name server's service address.
pub(crate) const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);
pub(crate) const SERVICE_RANGE: &str = "10.96.0.0/16";
pub(crate) const POD_RANGE: &str = "10.222.0.0/16";

/// The most nodes one bridge and one /16 of pod addresses are planned for.
const MOST_NODES: u8 = 100;

/// One node, known by its number, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct NodeNumber(u8);

impl NodeNumber {
    /// The nodes of a cluster of `count` nodes.
    pub(crate) fn all(count: u8) -> Result<Vec<Self>> {
        if count == 0 || count > MOST_NODES {
            bail!("a cluster has 1 to {MOST_NODES} nodes, not {count}");
        }
        Ok((1..=count).map(Self).collect())
    }

    /// The node of that name (`node-1`).
    pub(crate) fn parse(name: &str) -> Result<Self> {
        name.strip_prefix("node-")
            .and_then(|number| number.parse().ok())
            .filter(|number| (1..=MOST_NODES).contains(number))
            .map(Self)
            .with_context(|| format!("`{name}` is not a node's name; they are node-1, node-2, …"))
    }

    /// The node's name in Kubernetes, its host name too.
    pub(crate) fn name(self) -> String {
        format!("node-{}", self.0)
    }

    /// Name of its network namespace and of its cgroup.
    pub(crate) fn namespace(self) -> String {
        format!("{PREFIX}{}", self.name())
    }

    pub(crate) fn address(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 99, 0, 10 + self.0)
    }

    /// The addresses of this node's pods.
    pub(crate) fn pod_range(self) -> String {
        format!("10.222.{}.0/24", self.0)
    }

    /// The control plane's end of the cable to this node (names of links have at most 15 letters).
    pub(crate) fn cable(self) -> String {
        format!("to-{}", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_addresses_and_names_of_their_own() {
        let nodes = NodeNumber::all(100).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for node in &nodes {
            assert!(seen.insert(node.address().to_string()), "{node:?}");
            assert!(seen.insert(node.pod_range()), "{node:?}");
            assert!(seen.insert(node.namespace()), "{node:?}");
            assert!(node.cable().len() <= 15, "{}", node.cable());
            assert!(node.namespace().starts_with(PREFIX));
            assert_eq!(NodeNumber::parse(&node.name()).unwrap(), *node);
        }
        assert!(!seen.contains(&API_SERVER.to_string()));
    }

    #[test]
    fn other_names_are_no_nodes() {
        for name in [
            "",
            "node-",
            "node-0",
            "node-101",
            "node-x",
            "master",
            "node-1.example",
        ] {
            assert!(NodeNumber::parse(name).is_err(), "{name}");
        }
        assert!(NodeNumber::all(0).is_err());
    }
}

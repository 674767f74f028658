//! Every subject, and how a node's name becomes a token of one.
//!
//! Subject tokens hold no dots, node names do. Node names are DNS-1123 subdomains (Kubernetes), which hold no
//! underscore, so writing `_` for `.` can be undone.

use model::{ids::NodeName, order_id::Orderer};

/// Questions to the leader about nodes.
pub(crate) const ASK_PRESENCE: &str = "podwright.v1.ask.presence";
/// The signs of life of all nodes.
pub(crate) const ALL_PRESENCES: &str = "podwright.v1.presence.*";
/// The starts of containers behind launch barriers on all nodes.
pub(crate) const ALL_STARTED: &str = "podwright.v1.started.*";

/// Orders to a node.
pub fn order(node: &NodeName) -> String {
    format!("podwright.v1.node.{}.order", token(node))
}

/// Reports of a node to the controller that ordered.
pub fn report(orderer: Orderer, node: &NodeName) -> String {
    format!("podwright.v1.report.{}.{}", orderer.as_str(), token(node))
}

/// The reports of all nodes to one controller.
///
/// Nodes of versions without orderers report on `podwright.v1.report.<node>`, and only of the crr-scheduler's orders.
pub(crate) fn all_reports(orderer: Orderer) -> Vec<String> {
    let own = format!("podwright.v1.report.{}.*", orderer.as_str());
    match orderer {
        Orderer::Crr => vec![own, "podwright.v1.report.*".to_owned()],
        Orderer::Sidecar => vec![own],
    }
}

/// Signs of life of a node.
pub fn presence(node: &NodeName) -> String {
    format!("podwright.v1.presence.{}", token(node))
}

/// Starts of containers behind launch barriers on a node.
pub fn started(node: &NodeName) -> String {
    format!("podwright.v1.started.{}", token(node))
}

/// Where a client's answers come in: of its own, so that permissions can keep others from reading them.
///
/// A client of which there is one on each node is called `<service>/<node>`; the node is then a token of its own,
/// so that one permission covers the inboxes of all nodes.
pub fn inbox(client_name: &str) -> String {
    format!("_INBOX_{}", client_name.replace('.', "_").replace('/', "."))
}

/// The node that a subject names: the sender's identity, which the server's permissions hold.
pub fn node_of(subject: &str) -> Option<NodeName> {
    let rest = subject.strip_prefix("podwright.v1.")?;
    let mut tokens = rest.split('.');
    match (tokens.next()?, tokens.next()?, tokens.next()) {
        ("report", _, Some(token)) => Some(node_from(token)),
        ("node" | "report" | "presence" | "started", token, _) => Some(node_from(token)),
        _ => None,
    }
}

fn token(node: &NodeName) -> String {
    node.as_str().replace('.', "_")
}

/// The inverse of `token`.
fn node_from(token: &str) -> NodeName {
    NodeName::new(token.replace('_', "."))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_node_name_survives_every_subject(name in "[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?){0,4}") {
            let node = NodeName::new(name);
            let reports = Orderer::ALL.map(|orderer| report(orderer, &node));
            let old_report = format!("podwright.v1.report.{}", token(&node));
            let others = [order(&node), presence(&node), started(&node), old_report];
            for subject in reports.into_iter().chain(others) {
                prop_assert_eq!(node_of(&subject), Some(node.clone()));
                prop_assert!(subject.split('.').count() <= 5);
            }
        }
    }

    #[test]
    fn an_inbox_has_one_token_for_the_service_and_one_for_the_node() {
        assert_eq!(inbox("crr-scheduler"), "_INBOX_crr-scheduler");
        assert_eq!(
            inbox("node-executor/node-1.example"),
            "_INBOX_node-executor.node-1_example"
        );
    }

    #[test]
    fn a_foreign_subject_names_no_node() {
        assert_eq!(node_of("podwright.v1.ask.presence"), None);
        assert_eq!(node_of("other.v1.node.a.order"), None);
    }
}

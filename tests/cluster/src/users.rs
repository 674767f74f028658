//! Who may talk to the API server, and with what configuration.
//!
//! Tokens are as plain as the names: nothing outside the cluster's own namespaces reaches it.

use anyhow::Result;

use crate::{
    folders,
    folders::Folders,
    pki::Keys,
    plan::{API_PORT, API_SERVER, NodeNumber},
};

pub(crate) const CONTROLLER_MANAGER: &str = "kube-controller-manager";
pub(crate) const SCHEDULER: &str = "kube-scheduler";
pub(crate) const PROXY: &str = "kube-proxy";
const ADMIN: &str = "admin";

/// Writes the API server's list of tokens and one kubeconfig for each user.
pub(crate) fn write(folders: &Folders, keys: &Keys, nodes: &[NodeNumber]) -> Result<()> {
    let mut tokens = String::new();
    for user in [CONTROLLER_MANAGER, SCHEDULER, PROXY] {
        tokens += &format!("{user}-token,system:{user},{user}\n");
        folders::write(&folders.kubeconfig_of(user), kubeconfig(keys, user))?;
    }
    tokens += &format!("{ADMIN}-token,{ADMIN},{ADMIN},system:masters\n");
    folders::write(&folders.kubeconfig(), kubeconfig(keys, ADMIN))?;
    for node in nodes {
        let name = node.name();
        tokens += &format!("{name}-token,system:node:{name},{name},system:nodes\n");
        folders::write(&folders.kubeconfig_of(&name), kubeconfig(keys, &name))?;
    }
    folders::write(&tokens_file(folders), tokens)
}

pub(crate) fn tokens_file(folders: &Folders) -> std::path::PathBuf {
    folders.keys().join("tokens.csv")
}

fn kubeconfig(keys: &Keys, user: &str) -> String {
    let authority = keys.authority.display();
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters: [{{name: podwright, cluster: {{server: \"https://{API_SERVER}:{API_PORT}\", \
         certificate-authority: {authority}}}}}]\n\
         users: [{{name: {user}, user: {{token: {user}-token}}}}]\n\
         contexts: [{{name: podwright, context: {{cluster: podwright, user: {user}}}}}]\n\
         current-context: podwright\n"
    )
}

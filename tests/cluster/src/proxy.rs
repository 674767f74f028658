//! kube-proxy: makes service addresses work in one network namespace, by its iptables rules.

use anyhow::Result;

use crate::{
    daemon::{Daemon, Place},
    folders,
    folders::Folders,
    plan::{NodeNumber, POD_RANGE},
    programs::Programs,
    users,
};

/// The proxy of a place, which takes itself for that node.
pub(crate) fn daemon(
    folders: &Folders,
    programs: &Programs,
    place: Place,
    node: NodeNumber,
) -> Result<Daemon> {
    let name = place.namespace();
    let file = folders
        .cluster()
        .join("proxies")
        .join(format!("{name}.yaml"));
    folders::write(&file, configuration(folders, node))?;
    Ok(Daemon::new(folders, place, &programs.path("kube-proxy")?)
        .arguments([format!("--config={}", file.display())]))
}

fn configuration(folders: &Folders, node: NodeNumber) -> String {
    // The connection tracker's settings belong to the machine: zero leaves them alone.
    format!(
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1\n\
         kind: KubeProxyConfiguration\n\
         mode: iptables\n\
         clientConnection: {{kubeconfig: {}}}\n\
         clusterCIDR: {POD_RANGE}\n\
         hostnameOverride: {}\n\
         iptables: {{minSyncPeriod: 100ms}}\n\
         conntrack: {{maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}\n",
        folders.kubeconfig_of(users::PROXY).display(),
        node.name(),
    )
}

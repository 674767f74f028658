//! The files that a node's programs read: containerd's, the kubelet's, the pod network's.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::{
    folders,
    folders::Folders,
    images::PAUSE,
    pki::Keys,
    plan::{NAME_SERVER, NodeNumber},
};

pub(super) fn containerd_file(disk: &Path) -> PathBuf {
    disk.join("containerd.toml")
}

pub(super) fn kubelet_file(disk: &Path) -> PathBuf {
    disk.join("kubelet.yaml")
}

/// Where the kubelet looks for static pods on a node's disk.
pub(crate) const STATIC_PODS: &str = "static-pods";

/// Writes all of them to the node's disk.
pub(super) fn write(folders: &Folders, node: NodeNumber, disk: &Path) -> Result<()> {
    let names = disk.join("resolv.conf");
    folders::write(&names, "# Nothing outside the cluster has a name here.\n")?;
    folders::write(&containerd_file(disk), containerd())?;
    folders::create(&disk.join(STATIC_PODS))?;
    folders::write(
        &kubelet_file(disk),
        kubelet(&Keys::at(folders), node, disk, &names),
    )?;
    folders::write(
        &disk.join("network/10-podwright.conflist"),
        pod_network(node),
    )
}

/// Without `restrict_oom_score_adj` every sandbox fails where CAP_SYS_RESOURCE is missing.
fn containerd() -> String {
    format!(
        "version = 3\n\
         [plugins.'io.containerd.cri.v1.images']\n\
         snapshotter = 'overlayfs'\n\
         [plugins.'io.containerd.cri.v1.images'.pinned_images]\n\
         sandbox = '{PAUSE}'\n\
         [plugins.'io.containerd.cri.v1.runtime']\n\
         restrict_oom_score_adj = true\n\
         [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]\n\
         runtime_type = 'io.containerd.runc.v2'\n"
    )
}

/// The root control group is the node's own: two kubelets in one delete each other's pods.
fn kubelet(keys: &Keys, node: NodeNumber, disk: &Path, names: &Path) -> String {
    format!(
        r#"apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /{group}
enforceNodeAllocatable: []
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
volumePluginDir: /var/lib/kubelet/volume-plugins
authentication: {{anonymous: {{enabled: false}}, webhook: {{enabled: true}}, x509: {{clientCAFile: {authority}}}}}
authorization: {{mode: Webhook}}
failSwapOn: false
resolvConf: {names}
staticPodPath: {static_pods}
clusterDNS: [{NAME_SERVER}]
clusterDomain: cluster.local
evictionHard: {{memory.available: "0%", nodefs.available: "0%", imagefs.available: "0%"}}
imageGCHighThresholdPercent: 100
"#,
        group = node.namespace(),
        authority = keys.authority.display(),
        names = names.display(),
        static_pods = disk.join(STATIC_PODS).display(),
    )
}

fn pod_network(node: NodeNumber) -> String {
    serde_json::json!({
        "cniVersion": "1.0.0",
        "name": "podwright",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": true,
                "ipMasq": false,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{ "subnet": node.pod_range() }]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                },
            },
            { "type": "portmap", "capabilities": { "portMappings": true } },
        ],
    })
    .to_string()
}

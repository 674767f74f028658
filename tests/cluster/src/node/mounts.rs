//! A node's own view of the file system: the standard paths, each with the node's own content.
//!
//! A keeper process holds the namespaces open; all mounts are gone when the node's last process is.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};
use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, setns, unshare},
};
use tokio::sync::oneshot;

use crate::{
    command::SYSTEM_PATH, daemon::in_cgroup, folders, folders::Folders, network, plan::NodeNumber,
    process::Identity, state::State,
};

/// What is seen at a path of the node.
enum Content {
    /// A folder of the node's disk, which survives the node's death.
    Disk(&'static str),
    /// Memory, which does not.
    Memory,
    /// A folder of the machine.
    Machine(&'static str),
}

const MOUNTS: &[(&str, Content)] = &[
    ("/var/lib/containerd", Content::Disk("containerd")),
    (KUBELET, Content::Disk("kubelet")),
    ("/var/lib/cni", Content::Disk("cni")),
    ("/var/lib/podwright", Content::Disk("podwright")),
    ("/etc/cni/net.d", Content::Disk("network")),
    ("/var/log/pods", Content::Disk(POD_LOGS)),
    ("/var/log/containers", Content::Disk("container-logs")),
    ("/opt/cni/bin", Content::Machine("/usr/lib/cni")),
    ("/run/containerd", Content::Memory),
    ("/run/podwright", Content::Memory),
    ("/run/netns", Content::Memory),
    // Two runtimes that share this socket fail by chance.
    ("/run/nri", Content::Memory),
];

/// Volumes mounted here must be seen in the pods.
const KUBELET: &str = "/var/lib/kubelet";
/// Where the logs of pods lie on a node's disk.
pub(crate) const POD_LOGS: &str = "pod-logs";

/// Makes the folders of the machine that nodes mount on; gives those that were not there.
pub(crate) fn make_mount_points() -> Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    for (path, _) in MOUNTS {
        let missing: Vec<_> = Path::new(path)
            .ancestors()
            .take_while(|path| !path.exists())
            .collect();
        made.extend(missing.into_iter().rev().map(Path::to_owned));
        folders::create(Path::new(path))?;
    }
    Ok(made)
}

/// Makes the node's mount and host name namespaces in its network namespace, and starts the
/// process that holds them open.
pub(super) async fn hold(node: NodeNumber, disk: &Path, cgroup: &Path) -> Result<Identity> {
    let (disk, cgroup) = (disk.to_owned(), cgroup.to_owned());
    let (send, receive) = oneshot::channel();
    // Namespaces belong to a thread, and this one is used for nothing else afterwards.
    std::thread::Builder::new()
        .name(node.namespace())
        .spawn(move || {
            match enter(node, &disk).and_then(|()| spawn_keeper(&cgroup)) {
                Ok(mut keeper) => {
                    let identity = Identity::of(keeper.id().cast_signed());
                    drop(send.send(identity.context("the node's keeper died at once")));
                    // Not to leave a zombie when the node dies before us.
                    drop(keeper.wait());
                }
                Err(error) => drop(send.send(Err(error))),
            }
        })?;
    let made = receive.await.context("the thread ended early")?;
    made.with_context(|| format!("failed to make the namespaces of {}", node.name()))
}

/// Whether the node has a file at that path (without its leading slash).
pub(super) fn sees(folders: &Folders, node: NodeNumber, path: &str) -> Result<bool> {
    let state = State::read(folders)?.context("no cluster is up")?;
    let keeper = state.keepers.get(&node.name());
    let keeper = keeper.with_context(|| format!("{} is down", node.name()))?;
    Ok(Path::new(&format!("/proc/{}/root", keeper.pid))
        .join(path)
        .exists())
}

fn spawn_keeper(cgroup: &Path) -> Result<std::process::Child> {
    Command::new("setsid")
        .args(in_cgroup(cgroup))
        .args(["sleep", "infinity"])
        .env_clear()
        .env("PATH", SYSTEM_PATH)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("failed to start the node's keeper")
}

/// Moves this thread into new namespaces and mounts what the node is to see.
fn enter(node: NodeNumber, disk: &Path) -> Result<()> {
    let network = File::open(network::path(&node.namespace()))?;
    setns(network, CloneFlags::CLONE_NEWNET).context("failed to enter the network namespace")?;
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS).context("failed to unshare")?;
    std::fs::write("/proc/sys/kernel/hostname", node.name()).context("failed to name the host")?;
    // Nothing mounted from here on is seen by the machine.
    change("/", MsFlags::MS_REC | MsFlags::MS_PRIVATE)?;
    for (path, content) in MOUNTS {
        match content {
            Content::Disk(name) => {
                let folder = disk.join(name);
                folders::create(&folder)?;
                bind(&folder, path)?;
            }
            Content::Machine(folder) => bind(Path::new(folder), path)?,
            Content::Memory => mount(Some("tmpfs"), *path, Some("tmpfs"), MsFlags::empty(), NONE)
                .with_context(|| format!("failed to mount memory on {path}"))?,
        }
    }
    change(KUBELET, MsFlags::MS_REC | MsFlags::MS_SHARED)
}

const NONE: Option<&str> = None;

fn bind(from: &Path, to: &str) -> Result<()> {
    mount(Some(from), to, NONE, MsFlags::MS_BIND, NONE)
        .with_context(|| format!("failed to mount {} on {to}", from.display()))
}

fn change(path: &str, propagation: MsFlags) -> Result<()> {
    mount(NONE, path, NONE, propagation, NONE)
        .with_context(|| format!("failed to change how mounts on {path} spread"))
}

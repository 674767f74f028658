//! What runs, on disk: so that any later command finds it, and a clean-up after a crash too.

use std::{collections::BTreeMap, fs, io::ErrorKind, path::PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::{
    daemon::Daemon, folders::Folders, lock, plan::NodeNumber, process::Identity, programs::Programs,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Phase {
    Starting,
    Ready,
}

/// Everything we know about the running cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// The machine's boot: no process of another one is ours.
    pub boot: String,
    pub phase: Phase,
    pub nodes: Vec<NodeNumber>,
    pub programs: Programs,
    /// By node name: the process that holds the node's namespaces open.
    pub keepers: BTreeMap<String, Identity>,
    /// By name, such as `etcd` or `node-1/kubelet`.
    pub daemons: BTreeMap<String, Daemon>,
    /// Folders of the machine that we made to mount on, to be removed again.
    pub made_folders: Vec<PathBuf>,
}

impl State {
    pub(crate) fn new(nodes: Vec<NodeNumber>, programs: Programs) -> Result<Self> {
        Ok(Self {
            boot: boot()?,
            phase: Phase::Starting,
            nodes,
            programs,
            keepers: BTreeMap::new(),
            daemons: BTreeMap::new(),
            made_folders: Vec::new(),
        })
    }

    pub(crate) fn is_half_started(&self) -> bool {
        self.phase == Phase::Starting
    }

    /// Every process we started that may still live.
    pub(crate) fn processes(&self) -> Vec<Identity> {
        if boot().ok().as_ref() != Some(&self.boot) {
            return Vec::new();
        }
        let daemons = self.daemons.values().filter_map(|daemon| daemon.identity);
        self.keepers
            .values()
            .copied()
            .chain(daemons)
            .filter(Identity::alive)
            .collect()
    }

    /// Reads the state; there is none when nothing was started.
    pub(crate) fn read(folders: &Folders) -> Result<Option<Self>> {
        let path = folders.state();
        match fs::read(&path) {
            Ok(content) => serde_json::from_slice(&content)
                .map(Some)
                .with_context(|| format!("failed to understand {}", path.display())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("failed to read {}", path.display())),
        }
    }

    /// Replaces the file, whole.
    pub(crate) fn write(&self, folders: &Folders) -> Result<()> {
        let (path, next) = (folders.state(), folders.cluster().join("state.json.next"));
        crate::folders::write(&next, serde_json::to_vec_pretty(self)?)?;
        fs::rename(&next, &path).with_context(|| format!("failed to keep {}", path.display()))
    }

    /// Changes the state on disk; other processes and tasks may do so at the same time.
    pub(crate) fn update(folders: &Folders, change: impl FnOnce(&mut Self)) -> Result<()> {
        let _lock = lock::hold(&folders.lock("state"))?;
        let mut state = Self::read(folders)?.context("no cluster is up")?;
        change(&mut state);
        state.write(folders)
    }
}

fn boot() -> Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    Ok(id
        .context("failed to read the machine's boot")?
        .trim()
        .to_owned())
}

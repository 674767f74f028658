//! Where things lie: the cache of built programs and images, and the running cluster's state.
//!
//! Only paths; who owns a folder creates and removes it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The folder `$PODWRIGHT_CACHE`, by default `${XDG_CACHE_HOME:-$HOME/.cache}/podwright`.
#[derive(Clone, Debug)]
pub struct Folders {
    root: PathBuf,
}

impl Folders {
    pub fn from_environment() -> Result<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let root = variable("PODWRIGHT_CACHE")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(variable("XDG_CACHE_HOME")?).join("podwright")))
            .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache/podwright")))
            .context("none of PODWRIGHT_CACHE, XDG_CACHE_HOME and HOME is set")?;
        let root = std::path::absolute(root).context("failed to make the cache path absolute")?;
        Ok(Self { root })
    }

    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn programs(&self) -> PathBuf {
        self.root.join("programs")
    }

    pub fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    /// Locks live beside what they guard, so that removing it does not remove the lock.
    pub fn lock(&self, name: &str) -> PathBuf {
        self.root.join(format!("{name}.lock"))
    }

    /// Everything of the running cluster.
    pub fn cluster(&self) -> PathBuf {
        self.root.join("cluster")
    }

    pub fn state(&self) -> PathBuf {
        self.cluster().join("state.json")
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.cluster().join("kubeconfig")
    }

    pub fn kubeconfig_of(&self, user: &str) -> PathBuf {
        self.cluster()
            .join("users")
            .join(format!("{user}.kubeconfig"))
    }

    pub fn keys(&self) -> PathBuf {
        self.cluster().join("keys")
    }

    pub fn etcd(&self) -> PathBuf {
        self.cluster().join("etcd")
    }

    pub fn nodes(&self) -> PathBuf {
        self.cluster().join("nodes")
    }

    /// What lies on the disk of a node.
    pub fn node(&self, name: &str) -> PathBuf {
        self.nodes().join(name)
    }

    /// Logs of all processes; they stay after `down`, until the next `up`.
    pub fn logs(&self) -> PathBuf {
        self.cluster().join("logs")
    }

    /// One JSON line per request that the API server answered.
    pub fn audit_log(&self) -> PathBuf {
        self.logs().join("audit.log")
    }

    pub fn log_of(&self, daemon: &str) -> PathBuf {
        self.logs().join(format!("{daemon}.log"))
    }

    /// The figures that benchmarks measured.
    pub fn bench(&self) -> PathBuf {
        self.root.join("bench")
    }

    /// Where `logs` collects by default.
    pub fn collected_logs(&self) -> PathBuf {
        self.root.join("collected-logs")
    }
}

/// Creates a folder and the ones above it.
pub(crate) fn create(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("failed to create {}", path.display()))
}

/// Writes a whole file, and creates the folder it lies in.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    if let Some(parent) = path.parent() {
        create(parent)?;
    }
    std::fs::write(path, content).with_context(|| format!("failed to write {}", path.display()))
}

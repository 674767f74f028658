//! The test cluster under the tests, where it is one: only there can things be broken and stops be counted.

use anyhow::Result;
use cluster::{Cluster, Folders};

/// The test cluster, if `KUBECONFIG` is its.
///
/// # Errors
/// It is named, but not up.
pub fn our_cluster() -> Result<Option<Cluster>> {
    let folders = Folders::from_environment()?;
    let ours = folders.kubeconfig();
    if std::env::var_os("KUBECONFIG").is_some_and(|path| path == ours.as_os_str()) {
        Cluster::attach(folders).map(Some)
    } else {
        Ok(None)
    }
}

//! Leaves nothing behind: no process, mount, namespace, control group or link.
//!
//! Whose something is, is told by our control groups, our namespaces and the state file, never by
//! the name of a program: all of it works after any end of the process that started the cluster.

use std::{collections::BTreeSet, fs, time::Duration};

use anyhow::{Context, Result};
use nix::sys::signal::Signal;

use crate::{
    cgroup::Cgroups,
    folders::Folders,
    network,
    process::{ourselves_and_ancestors, signal_pid},
    state::State,
    wait,
};

/// Ends and removes everything but the logs. Says whether there was anything.
pub(crate) async fn remove_all(folders: &Folders) -> Result<bool> {
    // A state that cannot be read must not be in the way: the groups tell enough.
    let state = State::read(folders).unwrap_or_default();
    let cgroups = Cgroups::find()?;
    let mut names: BTreeSet<String> = cgroups.ours().into_iter().collect();
    names.extend(network::ours());
    let names: Vec<_> = names.into_iter().collect();

    for process in state.iter().flat_map(State::processes) {
        process.signal(Signal::SIGKILL)?;
    }
    kill_all(&names).await?;
    for name in network::ours() {
        network::delete(&name).await?;
    }
    for name in cgroups.ours() {
        cgroups.remove(&name).await?;
    }
    // Made last, so removed first.
    for folder in state
        .iter()
        .flat_map(|state| state.made_folders.iter().rev())
    {
        // Someone else may have put something there since.
        drop(fs::remove_dir(folder));
    }
    remove_files(folders)?;
    Ok(state.is_some() || !names.is_empty())
}

/// Kills whatever is in the groups and namespaces of these names. A group may hold processes whose
/// parent is being killed just now, hence again and again until none is left.
pub(crate) async fn kill_all(names: &[String]) -> Result<()> {
    let cgroups = Cgroups::find()?;
    let spared = ourselves_and_ancestors();
    wait::until(
        "killed processes to end",
        Duration::from_secs(20),
        async || {
            let mut left = BTreeSet::new();
            for name in names {
                left.extend(cgroups.processes(name));
                left.extend(network::processes(name));
            }
            left.retain(|pid| !spared.contains(pid));
            for pid in &left {
                signal_pid(*pid, Signal::SIGKILL)?;
            }
            Ok(left.is_empty())
        },
    )
    .await
}

/// Removes all files of the cluster but its logs; the state goes last, in case we are killed.
fn remove_files(folders: &Folders) -> Result<()> {
    let Ok(entries) = fs::read_dir(folders.cluster()) else {
        return Ok(());
    };
    let kept = [folders.logs(), folders.state()];
    for path in entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| !kept.contains(path))
    {
        let removed = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.with_context(|| format!("failed to remove {}", path.display()))?;
    }
    if folders.state().exists() {
        fs::remove_file(folders.state()).context("failed to remove the state")?;
    }
    Ok(())
}

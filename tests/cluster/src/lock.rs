//! File locks between the processes of this machine; the system frees them when their holder dies.

use std::{
    fs::{File, TryLockError},
    path::Path,
};

use anyhow::{Context, Result, bail};

use crate::{folders, progress::say};

/// Held until dropped.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "closing the file frees the lock")] File);

/// Waits until the lock is free.
pub(crate) async fn wait(path: &Path) -> Result<Lock> {
    if let Some(lock) = attempt(path)? {
        return Ok(lock);
    }
    say(format_args!(
        "waiting for another process that holds {} …",
        path.display()
    ));
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || hold(&path)).await?
}

/// Waits in this thread: for locks held for moments only.
pub(crate) fn hold(path: &Path) -> Result<Lock> {
    let file = open(path)?;
    file.lock()
        .with_context(|| format!("failed to lock {}", path.display()))?;
    Ok(Lock(file))
}

/// Takes the lock, or says at once that another process has it.
pub(crate) fn take(path: &Path) -> Result<Lock> {
    match attempt(path)? {
        Some(lock) => Ok(lock),
        None => bail!(
            "another process is bringing the cluster up or down ({})",
            path.display()
        ),
    }
}

fn attempt(path: &Path) -> Result<Option<Lock>> {
    let file = open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Lock(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("failed to lock {}", path.display()))
        }
    }
}

fn open(path: &Path) -> Result<File> {
    if let Some(parent) = path.parent() {
        folders::create(parent)?;
    }
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .with_context(|| format!("failed to open {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/lock");
        let held = take(&path).unwrap();
        assert!(take(&path).is_err());
        drop(held);
        take(&path).unwrap();
    }
}

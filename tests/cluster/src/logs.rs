//! Collects the logs of all processes and pods into one folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{folders, folders::Folders, node::POD_LOGS};

/// Copies every log whose path has the pattern in it, in place of an earlier collection; gives the
/// copies' paths. Works after `down` too, then without the pods.
pub fn collect(folders: &Folders, pattern: &str, into: &Path) -> Result<Vec<PathBuf>> {
    if into.exists() {
        fs::remove_dir_all(into).with_context(|| format!("failed to empty {}", into.display()))?;
    }
    let mut sources = vec![(folders.logs(), into.to_owned())];
    for node in children(&folders.nodes()) {
        let name = node.file_name().unwrap_or_default();
        sources.push((node.join(POD_LOGS), into.join(name).join("pods")));
    }
    let mut copied = Vec::new();
    for (from, to) in sources {
        for file in files_below(&from) {
            let copy = to.join(file.strip_prefix(&from)?);
            if copy.strip_prefix(into)?.to_string_lossy().contains(pattern) {
                folders::create(copy.parent().unwrap_or(into))?;
                fs::copy(&file, &copy)
                    .with_context(|| format!("failed to copy {}", file.display()))?;
                copied.push(copy);
            }
        }
    }
    copied.sort();
    Ok(copied)
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (folders, mut files): (Vec<_>, Vec<_>) =
        children(folder).into_iter().partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| files_below(folder)));
    files
}

fn children(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_and_pods_lie_side_by_side() {
        let root = tempfile::tempdir().unwrap();
        let folders = Folders::at(root.path());
        folders::write(&folders.log_of("etcd"), "e").unwrap();
        folders::write(&folders.log_of("node-1/kubelet"), "k").unwrap();
        let pod = folders
            .node("node-1")
            .join(POD_LOGS)
            .join("default_web_1/web/0.log");
        folders::write(&pod, "w").unwrap();
        let into = root.path().join("into");
        assert_eq!(collect(&folders, "", &into).unwrap().len(), 3);
        let copies = collect(&folders, "web", &into).unwrap();
        assert_eq!(copies, [into.join("node-1/pods/default_web_1/web/0.log")]);
        assert!(!into.join("etcd.log").exists());
    }
}

//! The control groups of a cluster: where its processes are found again, whoever started them.
//!
//! Each node and the control plane has one group, `podwright-…`. Its child `system` holds our
//! daemons (a runtime's shims with them); the kubelet makes its pods' groups beside it. With
//! version 1 the node's group exists in every hierarchy and one hierarchy is used for finding.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{folders, plan::PREFIX, wait};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cgroups {
    hierarchies: Vec<PathBuf>,
    /// The hierarchy in which processes are found.
    tracking: PathBuf,
    unified: bool,
    /// On a hybrid machine the version 2 hierarchy, in which runtimes leave groups of the same names.
    beside: Option<PathBuf>,
}

impl Cgroups {
    pub(crate) fn find() -> Result<Self> {
        let mounts =
            fs::read_to_string("/proc/self/mounts").context("failed to read the mounts")?;
        Self::parse(&mounts)
    }

    /// Reads the lines of `/proc/self/mounts`.
    fn parse(mounts: &str) -> Result<Self> {
        let mut hierarchies = Vec::new();
        let (mut tracking, mut unified) = (None, None);
        for line in mounts.lines() {
            let mut words = line.split(' ').skip(1);
            let (Some(path), Some(kind), Some(options)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            match kind {
                "cgroup" => {
                    hierarchies.push(PathBuf::from(path));
                    if options.split(',').any(|option| option == "pids") {
                        tracking = Some(PathBuf::from(path));
                    }
                }
                "cgroup2" => unified = Some(PathBuf::from(path)),
                _ => {}
            }
        }
        match (tracking, unified.clone()) {
            (Some(tracking), _) => Ok(Self {
                hierarchies,
                tracking,
                unified: false,
                beside: unified,
            }),
            (None, Some(root)) if hierarchies.is_empty() => Ok(Self {
                hierarchies: vec![root.clone()],
                tracking: root,
                unified: true,
                beside: None,
            }),
            _ => bail!("found neither version 1 control groups with `pids` nor version 2 ones"),
        }
    }

    /// Creates the group of a node or of the control plane.
    pub(crate) fn create(&self, name: &str) -> Result<()> {
        for hierarchy in &self.hierarchies {
            let group = hierarchy.join(name);
            folders::create(&group)?;
            // A group of version 1 takes no process before these are filled.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                if !self.unified && group.join(file).exists() {
                    folders::write(&group.join(file), fs::read(hierarchy.join(file))?)?;
                }
            }
        }
        if self.unified {
            for group in [self.tracking.clone(), self.tracking.join(name)] {
                pass_controllers_on(&group)?;
            }
        }
        folders::create(&self.tracking.join(name).join("system"))
    }

    /// The file that takes the number of a daemon.
    pub(crate) fn entrance(&self, name: &str) -> PathBuf {
        self.tracking.join(name).join("system/cgroup.procs")
    }

    /// The names of all groups of ours, also of a run that was killed.
    pub(crate) fn ours(&self) -> Vec<String> {
        let mut found: Vec<String> = self
            .everywhere()
            .filter_map(|hierarchy| fs::read_dir(hierarchy).ok())
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with(PREFIX))
            .collect();
        found.sort();
        found.dedup();
        found
    }

    fn everywhere(&self) -> impl Iterator<Item = &PathBuf> {
        self.hierarchies.iter().chain(&self.beside)
    }

    /// Every process in a group and below it.
    pub(crate) fn processes(&self, name: &str) -> Vec<i32> {
        let mut found = Vec::new();
        for group in groups_below(&self.tracking.join(name)) {
            let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            found.extend(members.lines().filter_map(|line| line.parse::<i32>().ok()));
        }
        found
    }

    /// Removes a group from every hierarchy; its processes must be dead.
    pub(crate) async fn remove(&self, name: &str) -> Result<()> {
        wait::until(
            &format!("the control group {name} to empty"),
            Duration::from_secs(10),
            async || {
                let mut gone = true;
                for hierarchy in self.everywhere() {
                    // The deepest first: a group with children cannot be removed.
                    for group in groups_below(&hierarchy.join(name)).iter().rev() {
                        gone &= match fs::remove_dir(group) {
                            Ok(()) => true,
                            Err(error) => error.kind() == io::ErrorKind::NotFound,
                        };
                    }
                }
                Ok(gone)
            },
        )
        .await
    }
}

/// A group and all below it, parents first.
fn groups_below(group: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![group.to_owned()];
    while let Some(group) = left.pop() {
        let Ok(entries) = fs::read_dir(&group) else {
            continue;
        };
        let folders = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir()));
        left.extend(folders.map(|entry| entry.path()));
        found.push(group);
    }
    found
}

/// Lets the children of a version 2 group have what the group itself has.
fn pass_controllers_on(group: &Path) -> Result<()> {
    let controllers = fs::read_to_string(group.join("cgroup.controllers"))?;
    let wanted: Vec<_> = controllers
        .split_whitespace()
        .map(|name| format!("+{name}"))
        .collect();
    fs::write(group.join("cgroup.subtree_control"), wanted.join(" "))
        .with_context(|| format!("failed to pass controllers on from {}", group.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hybrid_machines_are_used_by_version_1() {
        let found = Cgroups::parse(
            "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n\
             cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0\n\
             cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n",
        )
        .unwrap();
        assert_eq!(found.tracking, Path::new("/sys/fs/cgroup/pids"));
        assert_eq!(found.hierarchies.len(), 2);
        assert!(!found.unified);
    }

    #[test]
    fn unified_machines_have_one_hierarchy() {
        let found = Cgroups::parse("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n").unwrap();
        assert!(found.unified);
        assert_eq!(
            found.entrance("a"),
            Path::new("/sys/fs/cgroup/a/system/cgroup.procs")
        );
        assert!(Cgroups::parse("tmpfs / tmpfs rw 0 0\n").is_err());
    }

    #[test]
    fn parents_come_before_children() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b/c")).unwrap();
        let found = groups_below(root.path());
        assert_eq!(found.len(), 4);
        assert_eq!(found.last().unwrap(), &root.path().join("a/b/c"));
    }
}

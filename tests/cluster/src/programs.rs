//! The outside programs of the cluster: built once from the Go module proxy, then kept in the cache.
//!
//! What is built, and from what, is in `catalogue`; here is how. A build's folder is named by a
//! hash of everything it is made from, and appears complete or not at all.

pub(crate) mod catalogue;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::process::Command;

use self::catalogue::{MODULES, Module};
use crate::{command, folders, folders::Folders, progress::say};

/// Built programs, by name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Programs {
    root: PathBuf,
    go_version: String,
}

impl Programs {
    /// Builds whatever is not in the cache yet.
    pub async fn build_all(folders: &Folders) -> Result<Self> {
        let programs = Self::open(folders).await?;
        for module in MODULES {
            programs.ensure(module, folders).await?;
        }
        Ok(programs)
    }

    /// The path of one program, built if it is missing.
    pub async fn build_one(folders: &Folders, program: &str) -> Result<PathBuf> {
        let programs = Self::open(folders).await?;
        programs.ensure(module_of(program)?, folders).await?;
        programs.path(program)
    }

    async fn open(folders: &Folders) -> Result<Self> {
        let go_version = command::output(Command::new("go").args(["env", "GOVERSION"]))
            .await
            .context("Go is needed to build the cluster's programs")?;
        Ok(Self {
            root: folders.programs(),
            go_version: go_version.trim().to_owned(),
        })
    }

    /// Where a program is, built or not.
    pub fn path(&self, program: &str) -> Result<PathBuf> {
        Ok(self.folder(module_of(program)?).join(program))
    }

    /// A search path with all of them, before the system's own.
    pub fn search_path(&self) -> String {
        let ours = MODULES
            .iter()
            .map(|module| self.folder(module).display().to_string());
        ours.chain([command::SYSTEM_PATH.to_owned()])
            .collect::<Vec<_>>()
            .join(":")
    }

    fn folder(&self, module: &Module) -> PathBuf {
        self.root
            .join(format!("{}-{}", module.name, key(module, &self.go_version)))
    }

    async fn ensure(&self, module: &Module, folders: &Folders) -> Result<()> {
        let folder = self.folder(module);
        if folder.is_dir() {
            return Ok(());
        }
        let _lock = crate::lock::wait(&folders.lock("programs")).await?;
        if folder.is_dir() {
            return Ok(());
        }
        say(format_args!(
            "building {} … {}, once",
            module.name, module.effort
        ));
        folders::create(&self.root)?;
        remove_unfinished(&self.root);
        let work = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempdir_in(&self.root)?;
        let made = build(module, work.path()).await?;
        std::fs::rename(&made, &folder)
            .with_context(|| format!("failed to keep {}", folder.display()))
    }
}

/// How the folders of builds begin that are not complete.
const UNFINISHED: &str = ".building-";

/// Removes what killed builds left; ours is the only one, by the lock.
fn remove_unfinished(root: &Path) {
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}

/// The module that a program comes from.
fn module_of(program: &str) -> Result<&'static Module> {
    let Some(module) = MODULES.iter().find(|module| module.makes(program)) else {
        let known: Vec<_> = MODULES.iter().flat_map(Module::programs).collect();
        bail!(
            "there is no program `{program}`; there are: {}",
            known.join(", ")
        );
    };
    Ok(module)
}

/// Names a build by all that goes into it.
fn key(module: &Module, go_version: &str) -> String {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    };
    for (name, content) in module.files {
        add(name);
        add(content);
    }
    for program in module.binaries {
        add(program.name);
        add(program.package);
    }
    module.links.iter().for_each(|link| add(link));
    add(module.link_flags);
    add(if module.cgo { "cgo" } else { "static" });
    add(go_version);
    hash.finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

async fn build(module: &Module, work: &Path) -> Result<PathBuf> {
    let (sources, made) = (work.join("sources"), work.join("made"));
    for (name, content) in module.files {
        folders::write(&sources.join(name), content)?;
    }
    folders::create(&made)?;
    for binary in module.binaries {
        let mut go = Command::new("go");
        go.args(["build", "-p", "2", "-trimpath", "-ldflags"])
            .arg(format!("-s -w {}", module.link_flags))
            .arg("-o")
            .arg(made.join(binary.name))
            .arg(binary.package)
            .current_dir(&sources)
            .env("CGO_ENABLED", if module.cgo { "1" } else { "0" })
            .env("GOWORK", "off")
            .kill_on_drop(true);
        command::output(&mut go)
            .await
            .with_context(|| format!("failed to build {}", binary.name))?;
    }
    for link in module.links {
        std::os::unix::fs::symlink(module.binaries[0].name, made.join(link))?;
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_follows_everything_a_build_is_made_from() {
        let module = &MODULES[0];
        let first = key(module, "go1.26.8");
        assert_eq!(first, key(module, "go1.26.8"));
        assert_eq!(first.len(), 16);
        assert_ne!(first, key(module, "go1.27"));
        assert_ne!(
            first,
            key(
                &Module {
                    cgo: !module.cgo,
                    ..*module
                },
                "go1.26.8"
            )
        );
        assert_ne!(
            first,
            key(
                &Module {
                    files: &[("go.mod", "")],
                    ..*module
                },
                "go1.26.8"
            )
        );
        assert_ne!(
            first,
            key(
                &Module {
                    link_flags: "-X a=b",
                    ..*module
                },
                "go1.26.8"
            )
        );
    }

    #[test]
    fn every_program_has_one_module() {
        let names: Vec<_> = MODULES.iter().flat_map(Module::programs).collect();
        for name in &names {
            assert_eq!(
                names.iter().filter(|other| *other == name).count(),
                1,
                "{name}"
            );
            assert!(module_of(name).unwrap().makes(name));
        }
        assert!(
            module_of("emacs")
                .unwrap_err()
                .to_string()
                .contains("kubelet")
        );
    }
}

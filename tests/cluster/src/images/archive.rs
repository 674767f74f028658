//! The layout of an image archive (docker's `save` format): the image's configuration, one layer,
//! and a manifest that names both. The same content always gives the same bytes.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::json;
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

/// The files of a layer, by path without the leading slash.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    entries: BTreeMap<PathBuf, Entry>,
}

#[derive(Clone, Debug)]
enum Entry {
    Folder { mode: u32 },
    File { mode: u32, content: Vec<u8> },
    Link { to: PathBuf },
}

impl Tree {
    /// What programs expect of a system: users, somewhere to write, a folder for certificates.
    pub(super) fn with_users() -> Self {
        let mut tree = Self::default();
        let passwd = "root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532:nonroot:/:/bin/false\n";
        tree.file(Path::new("etc/passwd"), 0o644, passwd.into());
        tree.file(
            Path::new("etc/group"),
            0o644,
            "root:x:0:\nnonroot:x:65532:\n".into(),
        );
        tree.folder(Path::new("etc/ssl/certs"), 0o755);
        tree.folder(Path::new("root"), 0o700);
        tree.folder(Path::new("tmp"), 0o1777);
        tree.folder(Path::new("var/run"), 0o755);
        tree
    }

    pub(super) fn folder(&mut self, path: &Path, mode: u32) {
        self.parents_of(path);
        self.entries.insert(path.to_owned(), Entry::Folder { mode });
    }

    pub(super) fn program(&mut self, path: &Path, content: Vec<u8>) {
        self.file(path, 0o755, content);
    }

    pub(super) fn link(&mut self, path: &Path, to: &Path) {
        self.parents_of(path);
        self.entries
            .insert(path.to_owned(), Entry::Link { to: to.to_owned() });
    }

    /// Copies a file of this machine, executable as libraries and programs are.
    pub(super) fn copy(&mut self, from: &Path, to: &Path) -> Result<()> {
        let content =
            std::fs::read(from).with_context(|| format!("failed to read {}", from.display()))?;
        self.program(to.strip_prefix("/").unwrap_or(to), content);
        Ok(())
    }

    /// Names this content, together with what is to be run of it.
    pub(super) fn key(&self, entrypoint: &[String]) -> String {
        let mut hash = Sha256::new();
        hash.update(format!("{entrypoint:?}"));
        for (path, entry) in &self.entries {
            hash.update(format!("{path:?}"));
            match entry {
                Entry::Folder { mode } => hash.update(format!("folder {mode}")),
                Entry::Link { to } => hash.update(format!("link {to:?}")),
                Entry::File { mode, content } => {
                    hash.update(format!("file {mode} {}", content.len()));
                    hash.update(content);
                }
            }
        }
        hex(&hash.finalize())[..16].to_owned()
    }

    fn file(&mut self, path: &Path, mode: u32, content: Vec<u8>) {
        self.parents_of(path);
        self.entries
            .insert(path.to_owned(), Entry::File { mode, content });
    }

    fn parents_of(&mut self, path: &Path) {
        for parent in path
            .ancestors()
            .skip(1)
            .filter(|parent| *parent != Path::new(""))
        {
            self.entries
                .entry(parent.to_owned())
                .or_insert(Entry::Folder { mode: 0o755 });
        }
    }

    fn layer(&self) -> Result<Vec<u8>> {
        let mut layer = Builder::new(Vec::new());
        for (path, entry) in &self.entries {
            match entry {
                Entry::Folder { mode } => {
                    append(&mut layer, path, header(EntryType::Directory, *mode), &[])?;
                }
                Entry::File { mode, content } => {
                    append(&mut layer, path, header(EntryType::Regular, *mode), content)?;
                }
                Entry::Link { to } => {
                    let mut header = header(EntryType::Symlink, 0o777);
                    layer.append_link(&mut header, path, to)?;
                }
            }
        }
        Ok(layer.into_inner()?)
    }
}

/// One image, ready to be written.
pub(super) struct Archive<'a> {
    pub(super) name: &'a str,
    pub(super) tree: &'a Tree,
    pub(super) entrypoint: &'a [String],
}

impl Archive<'_> {
    pub(super) fn write(&self, to: impl Write) -> Result<()> {
        let layer = self.tree.layer()?;
        let layer_digest = hex(&Sha256::digest(&layer));
        let config = json!({
            "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
            "os": "linux",
            "config": {
                "Entrypoint": if self.entrypoint.is_empty() { None } else { Some(self.entrypoint) },
                "Env": [format!("PATH={}", crate::command::SYSTEM_PATH)],
            },
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer_digest}")] },
            "history": [{ "created_by": "podwright-cluster" }],
        })
        .to_string();
        let config_name = format!("{}.json", hex(&Sha256::digest(&config)));
        let layer_name = format!("{layer_digest}/layer.tar");
        let manifest =
            json!([{ "Config": config_name, "RepoTags": [self.name], "Layers": [layer_name] }])
                .to_string();

        let mut archive = Builder::new(to);
        let files: [(&str, &[u8]); 3] = [
            (&config_name, config.as_bytes()),
            (&layer_name, &layer),
            ("manifest.json", manifest.as_bytes()),
        ];
        for (path, content) in files {
            append(
                &mut archive,
                Path::new(path),
                header(EntryType::Regular, 0o644),
                content,
            )?;
        }
        archive.finish()?;
        Ok(())
    }
}

/// The name of the image in an archive, to tell whether a node has it.
pub(crate) fn name_in(archive: &Path) -> Result<String> {
    let file = std::fs::File::open(archive)
        .with_context(|| format!("failed to open {}", archive.display()))?;
    let mut archive = tar::Archive::new(file);
    for entry in archive.entries()? {
        let mut entry = entry?;
        if entry.path()?.as_ref() == Path::new("manifest.json") {
            let mut manifest = String::new();
            entry.read_to_string(&mut manifest)?;
            let manifest: serde_json::Value = serde_json::from_str(&manifest)?;
            let name = manifest[0]["RepoTags"][0].as_str();
            return name.map(str::to_owned).context("the image has no name");
        }
    }
    anyhow::bail!("no manifest.json: not an archive as `docker save` writes it")
}

fn header(kind: EntryType, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(0);
    header
}

fn append<W: Write>(
    to: &mut Builder<W>,
    path: &Path,
    mut header: Header,
    data: &[u8],
) -> Result<()> {
    header.set_size(data.len() as u64);
    to.append_data(&mut header, path, data)?;
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Tree {
        let mut tree = Tree::with_users();
        tree.program(Path::new("usr/local/bin/thing"), b"binary".to_vec());
        tree.link(Path::new("bin/sh"), Path::new("/bin/busybox"));
        tree
    }

    #[test]
    fn the_archive_names_its_parts_by_their_digests() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image.tar");
        let entrypoint = ["/usr/local/bin/thing".to_owned()];
        let archive = Archive {
            name: "localhost/thing:1",
            tree: &sample(),
            entrypoint: &entrypoint,
        };
        archive
            .write(std::fs::File::create(&path).unwrap())
            .unwrap();
        assert_eq!(name_in(&path).unwrap(), "localhost/thing:1");

        let mut files = BTreeMap::new();
        let mut read = tar::Archive::new(std::fs::File::open(&path).unwrap());
        for entry in read.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            files.insert(entry.path().unwrap().display().to_string(), content);
        }
        let manifest: serde_json::Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
        let config = &files[manifest[0]["Config"].as_str().unwrap()];
        let layer = &files[manifest[0]["Layers"][0].as_str().unwrap()];
        assert_eq!(
            manifest[0]["Config"],
            format!("{}.json", hex(&Sha256::digest(config)))
        );
        let config: serde_json::Value = serde_json::from_slice(config).unwrap();
        assert_eq!(config["config"]["Entrypoint"][0], "/usr/local/bin/thing");
        let diff = config["rootfs"]["diff_ids"][0].as_str().unwrap();
        assert_eq!(diff, format!("sha256:{}", hex(&Sha256::digest(layer))));
    }

    #[test]
    fn folders_come_before_what_lies_in_them() {
        let layer = sample().layer().unwrap();
        let mut read = tar::Archive::new(layer.as_slice());
        let paths: Vec<_> = read
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().into_owned())
            .collect();
        let place = |path: &str| paths.iter().position(|p| p == Path::new(path)).expect(path);
        assert!(place("usr") < place("usr/local"));
        assert!(place("usr/local/bin") < place("usr/local/bin/thing"));
        assert!(place("tmp") < place("usr"));
    }

    #[test]
    fn the_same_content_has_the_same_key_and_bytes() {
        assert_eq!(sample().key(&[]), sample().key(&[]));
        assert_ne!(sample().key(&[]), sample().key(&["x".to_owned()]));
        assert_eq!(sample().layer().unwrap(), sample().layer().unwrap());
        let mut other = sample();
        other.program(Path::new("usr/local/bin/thing"), b"Binary".to_vec());
        assert_ne!(sample().key(&[]), other.key(&[]));
    }
}
